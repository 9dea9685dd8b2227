//! Capabilities of the terminal: colours, and characters beyond ASCII.

use gleaner_schemas::findings::Category;
use ratatui::style::{Color, Modifier, Style};
use std::env;

/// Colours and characters of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ink {
    colours: Colours,
    is_light: bool,
    pub(super) is_unicode: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colours {
    None,
    /// The 256 colours of xterm: only the cube and the greys, which themes do not change.
    Indexed,
    True,
}

/// Parts of a frame that have a colour of their own. The colours are those of the report
/// (reports/assets/style.css), for light and dark backgrounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Category(Category),
    Kernel,
    Harvestable,
    Warning,
    Soft,
}

impl Paint {
    fn rgb(self, is_light: bool) -> u32 {
        let (light, dark) = match self {
            Self::Category(Category::StaticKernel) => (0x4b_5560, 0x96_a1ac),
            Self::Category(Category::Balloon) => (0xa9_b1ba, 0x4d_5660),
            Self::Category(Category::DynamicKernel) | Self::Kernel => (0x7b_8792, 0x6c_7782),
            Self::Category(Category::Reserve) => (0xcc_79a7, 0xd5_8db5),
            Self::Category(Category::Process) => (0xd5_5e00, 0xe0_6c14),
            Self::Category(Category::FileCache) => (0xe6_9f00, 0xeb_a91c),
            Self::Category(Category::Guest) => (0xe3_d329, 0xf0_e442),
            Self::Category(Category::Available) => (0x8f_d0f2, 0x2b_6f98),
            Self::Harvestable => (0x00_875f, 0x2f_c493),
            Self::Warning => (0xb3_500a, 0xf0_954f),
            Self::Soft => (0x57_606a, 0xa3_acb5),
        };
        if is_light { light } else { dark }
    }
}

impl Ink {
    /// Unicode characters without colours.
    #[cfg(test)]
    pub(super) const PLAIN: Self = Self {
        colours: Colours::None,
        is_light: false,
        is_unicode: true,
    };

    /// Capabilities of the terminal, according to the environment variables.
    pub(super) fn of_environment() -> Self {
        Self::of(|name| env::var(name).ok().filter(|value| !value.is_empty()))
    }

    /// The same characters without colours, for pipes.
    pub(super) fn without_colours(self) -> Self {
        Self {
            colours: Colours::None,
            ..self
        }
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let has = |name: &str, words: &[&str]| {
            variable(name).is_some_and(|value| words.iter().any(|word| value.contains(word)))
        };
        let colours = if variable("NO_COLOR").is_some() {
            Colours::None
        } else if has("COLORTERM", &["truecolor", "24bit"]) {
            Colours::True
        } else if has("TERM", &["256color"]) {
            Colours::Indexed
        } else {
            Colours::None
        };
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .find_map(&variable);
        let locale = locale.unwrap_or_default().to_ascii_lowercase();
        // Example: COLORFGBG=0;15. The last number is the background, one of the 16 basic colours.
        let paper = variable("COLORFGBG").and_then(|v| v.rsplit(';').next()?.parse::<u8>().ok());
        Self {
            colours,
            is_light: paper.is_some_and(|paper| paper == 7 || paper == 15),
            is_unicode: locale.contains("utf-8") || locale.contains("utf8"),
        }
    }

    pub(super) fn has_colours(self) -> bool {
        self.colours != Colours::None
    }

    /// Style with this foreground colour.
    pub(super) fn style(self, paint: Paint) -> Style {
        let rgb = paint.rgb(self.is_light);
        let [_, r, g, b] = rgb.to_be_bytes();
        match self.colours {
            Colours::None => Style::new(),
            Colours::Indexed => Style::new().fg(Color::Indexed(nearest([r, g, b]))),
            Colours::True => Style::new().fg(Color::Rgb(r, g, b)),
        }
    }

    pub(super) fn bold() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }
}

/// Nearest colour in xterm's cube of 6 × 6 × 6 colours and its 24 greys.
fn nearest(rgb: [u8; 3]) -> u8 {
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let cube = (0..216_u8).map(|i| {
        let step = |n: u8| STEPS[usize::from(n % 6)];
        (16 + i, [step(i / 36), step(i / 6), step(i)])
    });
    let greys = (0..24_u8).map(|i| (232 + i, [8 + 10 * i; 3]));
    let distance = |of: [u8; 3]| -> u32 {
        let parts = of.iter().zip(rgb);
        parts.map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum()
    };
    let found = cube.chain(greys).min_by_key(|(_, of)| distance(*of));
    found.map_or(0, |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ink(pairs: &[(&str, &str)]) -> Ink {
        Ink::of(|name| {
            let pair = pairs.iter().find(|(key, _)| *key == name);
            pair.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn colours_are_what_the_terminal_says_it_has() {
        let many = ("TERM", "xterm-256color");
        let colours = |pairs: &[_]| ink(pairs).colours;
        assert_eq!(colours(&[many]), Colours::Indexed);
        assert_eq!(colours(&[many, ("COLORTERM", "truecolor")]), Colours::True);
        assert_eq!(
            colours(&[many, ("COLORTERM", "truecolor"), ("NO_COLOR", "1")]),
            Colours::None
        );
        assert_eq!(colours(&[("TERM", "linux")]), Colours::None);
        assert!(ink(&[("LANG", "de_DE.UTF-8")]).is_unicode);
        assert!(!ink(&[("LC_ALL", "C"), ("LANG", "C.UTF-8")]).is_unicode);
        assert!(ink(&[("COLORFGBG", "0;15")]).is_light && !ink(&[("COLORFGBG", "15;0")]).is_light);
    }

    #[test]
    fn the_nearest_of_256_colours() {
        assert_eq!(nearest([0xd5, 0x5e, 0x00]), 166); // colour 166 is d75f00
        assert_eq!(nearest([0x8f, 0xd0, 0xf2]), 117); // colour 117 is 87d7ff
        assert_eq!(nearest([0x4b, 0x55, 0x60]), 240); // colour 240 is 585858
    }

    /// The colours equal those of the report's style sheet, which defines each as a custom property, such as
    /// `--static-kernel`.
    #[test]
    fn colours_are_the_reports() {
        let style = include_str!("../../../reports/assets/style.css");
        let (light, dark) = style.split_once("prefers-color-scheme: dark").unwrap();
        for (name, paint) in [
            ("static-kernel", Paint::Category(Category::StaticKernel)),
            ("balloon", Paint::Category(Category::Balloon)),
            ("dynamic-kernel", Paint::Category(Category::DynamicKernel)),
            ("reserve", Paint::Category(Category::Reserve)),
            ("process", Paint::Category(Category::Process)),
            ("file-cache", Paint::Category(Category::FileCache)),
            ("guest", Paint::Category(Category::Guest)),
            ("available", Paint::Category(Category::Available)),
            ("harvestable", Paint::Harvestable),
            ("soft", Paint::Soft),
            ("threshold", Paint::Warning),
        ] {
            for (is_light, theme) in [(true, light), (false, dark)] {
                let colour = format!("--{name}: #{:06x};", paint.rgb(is_light));
                assert!(theme.contains(&colour), "{colour}");
            }
        }
    }
}
