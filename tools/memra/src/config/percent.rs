//! A share written the way people say it, `3%`, or as a fraction of one, `0.03`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A share of something; `3%` is 0.03.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub(crate) struct Percent(f64);

impl Percent {
    /// `percent` hundredths.
    pub(crate) const fn new(percent: f64) -> Percent {
        Percent(percent / 100.0)
    }

    /// As a fraction of one.
    pub(crate) fn fraction(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded where binary fractions would print 3.0000000000000004%.
        let percent = (self.0 * 1e10).round() / 1e8;
        write!(f, "{percent}%")
    }
}

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Percent, String> {
        let number = |text: &str| text.trim().parse::<f64>().map_err(|_| refuse(text));
        let share = match text.trim().strip_suffix('%') {
            Some(percent) => Percent::new(number(percent)?),
            None => Percent(number(text)?),
        };
        // A bare 3 is three hundred percent, or a percent sign forgotten: refused rather than guessed.
        if (0.0..=1.0).contains(&share.0) { Ok(share) } else { Err(refuse(text)) }
    }
}

fn refuse(text: &str) -> String {
    format!("`{text}` is not a share between 0% and 100%; write it with a percent sign, such as 3%")
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Percent, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Text(String),
            Number(f64),
        }
        let text = match Form::deserialize(deserializer)? {
            Form::Text(text) => text,
            Form::Number(number) => number.to_string(),
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_round_trip_and_bare_numbers_are_refused() {
        for text in ["0%", "3%", "0.5%", "12.25%", "100%"] {
            assert_eq!(text.parse::<Percent>().unwrap().to_string(), text);
        }
        assert_eq!("3%".parse::<Percent>().unwrap(), "0.03".parse::<Percent>().unwrap());
        for text in ["3", "", "%", "x%", "-1%", "101%", "NaN%"] {
            assert!(text.parse::<Percent>().is_err(), "{text}");
        }
    }
}
