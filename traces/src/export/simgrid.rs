//! A SimGrid platform whose hosts follow two profiles each: a state (on while the region is available), and
//! the share of the host's memory that is available.
//!
//! ```text
//! platform.xml             the hosts, in a zone whose properties state the date of the clock's 0
//! profiles/00000.state     lines of "time 1" (on) and "time 0" (off)
//! profiles/00000.share     lines of "time share"
//! ```
//!
//! SimGrid does not model memory of hosts. A host's speed here is its memory: as many flop/s as it has bytes,
//! so that `get_speed() * get_available_speed()` is the available memory in bytes. More: docs/exports.md.

use super::names::{ENDINGS, PLATFORM, PROFILES};
use super::text::{Seconds, TextFile};
use super::{ByHost, ExportSummary, folder};
use crate::{ExportError, Result};
use gleaner_schemas::availability::{AvailabilityQuestion, HostAvailability};
use gleaner_schemas::findings::Scope;
use std::fmt::{self, Display};
use std::fs;
use std::path::{Path, PathBuf};

/// Number of steps in which shares are written: a millionth of 16 GiB is 16 KiB.
const SHARE_UNITS: f64 = 1e6;

/// An export for SimGrid; its platform file is being written.
pub struct SimGrid {
    out_dir: PathBuf,
    platform: TextFile,
    /// Time in the dataset at which the simulation's clock is 0.
    origin_ms: i64,
    hosts_count: u64,
    exported: ExportSummary,
}

impl SimGrid {
    /// Begins an export of the answers to `question`, which must ask for samples. SimGrid's clock begins at
    /// `origin_ms`.
    ///
    /// # Errors
    /// [`ExportError::NotEmpty`] for a folder that holds anything but an export, or an error of writing.
    pub fn create(out_dir: &Path, question: &AvailabilityQuestion, origin_ms: i64) -> Result<Self> {
        folder::begin(out_dir, "simgrid")?;
        let profiles = out_dir.join(PROFILES);
        fs::create_dir_all(&profiles).map_err(ExportError::io("create folder", &profiles))?;
        let mut platform = TextFile::create(out_dir.join(PLATFORM))?;
        let scope = match question.scope {
            Scope::All => "all",
            Scope::Idle => "idle",
        };
        platform.line("<?xml version=\"1.0\"?>")?;
        platform.line("<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">")?;
        platform.line("<platform version=\"4.1\">")?;
        platform.line("  <zone id=\"gleaner\" routing=\"None\">")?;
        platform.line(Property("    ", "origin_time_ms", origin_ms))?;
        platform.line(Property("    ", "region_bytes", question.region_bytes))?;
        platform.line(Property("    ", "scope", scope))?;
        platform.line(Property(
            "    ",
            "minimum_period_ms",
            question.minimum_period_ms,
        ))?;
        Ok(Self {
            out_dir: out_dir.to_owned(),
            platform,
            origin_ms,
            hosts_count: 0,
            exported: ExportSummary::default(),
        })
    }

    /// Converts a time to the simulation's clock.
    fn clock(&self, time_ms: i64) -> i64 {
        time_ms.saturating_sub(self.origin_ms).max(0)
    }

    fn profile(&self, ending: &str) -> Result<TextFile> {
        let name = format!("{PROFILES}/{:05}.{ending}", self.hosts_count);
        TextFile::create(self.out_dir.join(name))
    }

    /// Writes the state profile: on during availability periods, off at all other times.
    fn write_state(&mut self, host: &HostAvailability) -> Result<()> {
        let mut state = self.profile(ENDINGS[0])?;
        if host
            .periods
            .first()
            .is_none_or(|p| self.clock(p.from_ms) > 0)
        {
            state.line("0 0")?;
        }
        for period in &host.periods {
            let (from_ms, to_ms) = (self.clock(period.from_ms), self.clock(period.to_ms));
            state.line(format_args!("{} 1", Seconds(from_ms)))?;
            state.line(format_args!("{} 0", Seconds(to_ms)))?;
        }
        self.exported.add(state.lines, state.finish()?);
        Ok(())
    }

    /// Writes the share profile. A sample holds until the next; in gaps, before the first sample and after
    /// the last, the share is 0.
    fn write_share(&mut self, host: &HostAvailability) -> Result<()> {
        let mut file = self.profile(ENDINGS[1])?;
        let (mut latest_ms, mut last) = (0, None);
        let mut line = |time_ms: i64, bytes: i64| -> Result<()> {
            let share = bytes as f64 / host.physical_bytes.max(1) as f64;
            let units = (share * SHARE_UNITS).round().clamp(0.0, SHARE_UNITS) as u64;
            // After the host's clock was set back, times repeat: the earlier value of a time is kept.
            if time_ms < latest_ms {
                return Ok(());
            }
            latest_ms = time_ms;
            if last.replace(units) == Some(units) {
                return Ok(());
            }
            let share = Share(units);
            file.line(format_args!("{} {share}", Seconds(time_ms)))
        };
        if host
            .samples
            .first()
            .is_none_or(|s| self.clock(s.time_ms) > 0)
        {
            line(0, 0)?;
        }
        for (at, sample) in host.samples.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|at| host.samples.get(at));
            if let Some(before) = before.filter(|_| sample.follows_gap) {
                line(self.clock(before.time_ms), 0)?;
            }
            line(self.clock(sample.time_ms), sample.available_bytes)?;
        }
        if let Some(end) = host.samples.last() {
            line(self.clock(end.time_ms), 0)?;
        }
        self.exported.add(file.lines, file.finish()?);
        Ok(())
    }
}

impl ByHost for SimGrid {
    /// Adds a host. A host without usable data is left out: neither on nor off would be true.
    fn add(&mut self, host: &HostAvailability) -> Result<()> {
        if !host.is_told {
            return Ok(());
        }
        self.write_state(host)?;
        self.write_share(host)?;
        let number = self.hosts_count;
        self.hosts_count += 1;
        let [state, share] = ENDINGS;
        self.platform.line(format_args!(
            "    <host id=\"{}\" speed=\"{}f\" state_file=\"{PROFILES}/{number:05}.{state}\" speed_file=\"{PROFILES}/{number:05}.{share}\">",
            Attribute(&host.host_id),
            host.physical_bytes.max(1)
        ))?;
        self.platform
            .line(Property("      ", "host_name", &host.host_name))?;
        if let Some(cpus_count) = host.cpus_count {
            self.platform
                .line(Property("      ", "cpus_count", cpus_count))?;
        }
        self.platform.line(Property(
            "      ",
            "traced_from_s",
            Seconds(self.clock(host.from_ms)),
        ))?;
        self.platform.line(Property(
            "      ",
            "traced_to_s",
            Seconds(self.clock(host.to_ms)),
        ))?;
        self.platform.line("    </host>")
    }

    fn finish(mut self: Box<Self>) -> Result<ExportSummary> {
        self.platform.line("  </zone>")?;
        self.platform.line("</platform>")?;
        let mut exported = self.exported;
        exported.add(self.platform.lines, self.platform.finish()?);
        folder::mark(&self.out_dir, "simgrid", true)?;
        Ok(exported)
    }
}

/// A share in millionths.
struct Share(u64);

impl Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0"),
            units => write!(f, "{:.6}", units as f64 / SHARE_UNITS),
        }
    }
}

/// XML property: indentation, name and value.
struct Property<V>(&'static str, &'static str, V);

impl<V: Display> Display for Property<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.2.to_string();
        let (indent, name, value) = (self.0, self.1, Attribute(&value));
        write!(f, "{indent}<prop id=\"{name}\" value=\"{value}\"/>")
    }
}

/// Text as the value of an XML attribute; characters that XML forbids become `_`.
struct Attribute<'a>(&'a str);

impl Display for Attribute<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\u{fffe}' | '\u{ffff}' => f.write_str("_")?,
                c if c.is_control() => f.write_str("_")?,
                c => write!(f, "{c}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_hold_any_text() {
        let text = Attribute("a<b> & \"c\"\u{0}\n\u{ffff}ü").to_string();
        assert_eq!(text, "a&lt;b&gt; &amp; &quot;c&quot;___ü");
    }

    #[test]
    fn shares_have_six_digits() {
        let told = [0, 1, 500_000, 1_000_000].map(|units| Share(units).to_string());
        assert_eq!(told, ["0", "0.000001", "0.500000", "1.000000"]);
    }
}
