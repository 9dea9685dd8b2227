//! The link between a host and the bridge: its rate, delay and loss, as far as this kernel and machine support them.

use super::address::{BRIDGE, INTERFACE, LAB, Node};
use super::network::{iptables, is_installed, succeeds, tc};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// A rate like `100mbit`; users and tc write rates in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rate {
    text: String,
    bits_a_second: u64,
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Parses a rate like `100mbit`.
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    let split = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "kbit" => 1000,
        "mbit" => 1_000_000,
        "gbit" => 1_000_000_000,
        _ => {
            return Err(format!(
                "`{text}` is no rate: write it like 512kbit, 100mbit or 1gbit"
            ));
        }
    };
    let number: u64 = number
        .parse()
        .map_err(|_| format!("`{text}` is no rate: 1 to 100gbit"))?;
    match number.checked_mul(factor) {
        Some(bits @ 1000..=100_000_000_000) => Ok(Rate {
            text: text.to_owned(),
            bits_a_second: bits,
        }),
        _ => Err(format!("`{text}` is no rate: from 1kbit to 100gbit")),
    }
}

/// Parses a loss like `1%` or `0.5%`, and returns it as a share.
pub(crate) fn loss(text: &str) -> Result<f64, String> {
    let percent = text
        .strip_suffix('%')
        .and_then(|number| number.parse::<f64>().ok());
    percent
        .filter(|percent| (0.0..100.0).contains(percent))
        .map(|percent| percent / 100.0)
        .ok_or_else(|| format!("`{text}` is no loss: write it like 1%, below 100%"))
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.rate.as_ref().map(|rate| format!("{rate} either way"));
        let delay = self
            .delay_us
            .map(|us| format!("{} ms delay", us as f64 / 1000.0));
        let loss = self
            .loss_share
            .map(|share| format!("{} % loss", share * 100.0));
        let parts: Vec<String> = [rate, delay, loss].into_iter().flatten().collect();
        f.write_str(if parts.is_empty() { "no limits" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

/// Properties of a host's link as requested, and which of them are not available.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Link {
    pub(super) rate: Option<Rate>,
    pub(super) delay_us: Option<u64>,
    pub(super) loss_share: Option<f64>,
    /// Descriptions of the properties that are not available.
    pub(super) cannot: Vec<String>,
    has_netem: bool,
}

impl Link {
    /// Tests on the lab's bridge which properties the kernel supports. The bridge must exist and have no ports yet.
    pub(super) fn probed(rate: Option<Rate>, delay: Option<Duration>, loss: Option<f64>) -> Self {
        let delay_us = delay.map(|d| u64::try_from(d.as_micros()).unwrap_or(u64::MAX));
        let mut link = Self {
            rate,
            delay_us: delay_us.filter(|us| *us > 0),
            loss_share: loss.filter(|share| *share > 0.0),
            ..Self::default()
        };
        let probe = |qdisc: &[&str]| {
            let there = succeeds(&mut tc(
                LAB,
                &[&["qdisc", "add", "dev", BRIDGE, "root"], qdisc].concat(),
            ));
            succeeds(&mut tc(LAB, &["qdisc", "del", "dev", BRIDGE, "root"]));
            there
        };
        link.has_netem = (link.delay_us.is_some() || link.loss_share.is_some())
            && probe(&["netem", "delay", "1ms"]);
        if link.delay_us.is_some() && !link.has_netem {
            link.delay_us = None;
            link.cannot
                .push("delay: this kernel has no netem (CONFIG_NET_SCH_NETEM)".to_owned());
        }
        if link.loss_share.is_some() && !link.has_netem {
            let rule = [
                "-A",
                "INPUT",
                "-m",
                "statistic",
                "--mode",
                "random",
                "--probability",
                "0",
                "-j",
                "DROP",
            ];
            let undo = [&["-D"], &rule[1..]].concat();
            if !is_installed("iptables") {
                link.loss_share = None;
                link.cannot.push(
                    "loss: iptables is not installed, and the kernel has no netem".to_owned(),
                );
            } else if !succeeds(&mut iptables(LAB, &rule)) {
                link.loss_share = None;
                link.cannot
                    .push("loss: this kernel has neither netem nor the statistic match".to_owned());
            } else {
                succeeds(&mut iptables(LAB, &undo));
            }
        }
        if link.rate.is_some()
            && !link.has_netem
            && !probe(&["tbf", "rate", "1mbit", "burst", "16kb", "latency", "50ms"])
        {
            link.rate = None;
            link.cannot
                .push("rate: this kernel has neither tbf nor netem".to_owned());
        }
        link
    }

    /// Commands that set the properties at both ends of the link of `host`.
    pub(super) fn commands(&self, host: &Node) -> Vec<std::process::Command> {
        let ends = [
            (host.namespace.as_str(), INTERFACE),
            (LAB, host.port.as_str()),
        ];
        let mut commands = Vec::new();
        if let Some(qdisc) = self.qdisc() {
            for (namespace, device) in ends {
                let mut args = vec!["qdisc", "add", "dev", device, "root"];
                args.extend(qdisc.iter().map(String::as_str));
                commands.push(tc(namespace, &args));
            }
        }
        if let Some(rule) = self.drops() {
            let rule: Vec<&str> = rule.iter().map(String::as_str).collect();
            commands.push(iptables(&host.namespace, &rule));
        }
        commands
    }

    /// Arguments for iptables: a rule that drops incoming packets at random. The rule is needed if netem is
    /// not available.
    ///
    /// iptables does not see bridged packets: a host's outgoing packets can only be dropped at their
    /// destination.
    pub(super) fn drops(&self) -> Option<Vec<String>> {
        let share = self.loss_share.filter(|_| !self.has_netem)?.to_string();
        let rule = [
            "-A",
            "INPUT",
            "!",
            "-i",
            "lo",
            "-m",
            "statistic",
            "--mode",
            "random",
            "--probability",
            &share,
            "-j",
            "DROP",
        ];
        Some(rule.map(str::to_owned).to_vec())
    }

    fn qdisc(&self) -> Option<Vec<String>> {
        let mut words: Vec<String> = Vec::new();
        if self.has_netem {
            words.push("netem".to_owned());
            if let Some(delay_us) = self.delay_us {
                words.extend(["delay".to_owned(), format!("{delay_us}us")]);
            }
            if let Some(share) = self.loss_share {
                words.extend(["loss".to_owned(), format!("{}%", share * 100.0)]);
            }
            if let Some(rate) = &self.rate {
                words.extend(["rate".to_owned(), rate.text.clone()]);
            }
        } else if let Some(rate) = &self.rate {
            // The token bucket holds what the link sends in 10 ms, the longest tick of a kernel, or at least
            // a few packets.
            let burst_bytes = (rate.bits_a_second / 8 / 100).max(16 << 10);
            let text = format!("tbf rate {rate} burst {burst_bytes} latency 50ms");
            words.extend(text.split(' ').map(str::to_owned));
        }
        (!words.is_empty()).then_some(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_losses_as_people_type_them() {
        for (text, bits) in [
            ("512kbit", 512_000),
            ("100mbit", 100_000_000),
            ("1gbit", 1_000_000_000),
        ] {
            assert_eq!(rate(text).map(|r| r.bits_a_second), Ok(bits), "{text}");
        }
        for text in [
            "",
            "100",
            "mbit",
            "0mbit",
            "1.5mbit",
            "100mbps",
            "-1mbit",
            "999gbit",
            "99999999999999999999kbit",
        ] {
            assert!(rate(text).is_err(), "{text}");
        }
        assert_eq!(loss("1%"), Ok(0.01));
        assert_eq!(loss("0%"), Ok(0.0));
        for text in ["", "1", "%", "100%", "-1%", "x%", "nan%"] {
            assert!(loss(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_the_kernel_lacks_is_left_out_and_never_asked_of_it() {
        let link = Link {
            rate: rate("100mbit").ok(),
            loss_share: Some(0.01),
            ..Link::default()
        };
        let words = link.qdisc().unwrap().join(" ");
        assert_eq!(words, "tbf rate 100mbit burst 125000 latency 50ms");
        assert!(link.drops().unwrap().contains(&"0.01".to_owned()));
        let with_netem = Link {
            delay_us: Some(5000),
            has_netem: true,
            ..link
        };
        let words = with_netem.qdisc().unwrap().join(" ");
        assert_eq!(words, "netem delay 5000us loss 1% rate 100mbit");
        assert_eq!(with_netem.drops(), None);
        assert_eq!(Link::default().qdisc(), None);
    }
}
