//! A moment in time and `strftime`, for templates that tell the model what day it is.

use std::time::{SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// A date and time of day, in UTC unless whoever made it shifted it to another zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Seconds since 1970-01-01 00:00.
    seconds: i64,
}

impl Moment {
    /// The moment so many seconds after 1970-01-01 00:00. Add a zone's offset for local time. Moments outside of the
    /// years 0 to 9999 are taken to their nearest end.
    pub fn from_unix(seconds: i64) -> Moment {
        Moment { seconds: seconds.clamp(-62_167_219_200, 253_402_300_799) }
    }

    /// Now, in UTC.
    pub fn now() -> Moment {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment::from_unix(since.as_secs().try_into().unwrap_or(i64::MAX))
    }

    /// Year, month from 1, day from 1 (the proleptic Gregorian calendar).
    fn date(self) -> (i64, i64, i64) {
        // Years begin in March here, so that the leap day is the last; eras are 400 years of 146,097 days.
        let days = self.seconds.div_euclid(86_400) + 719_468;
        let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        (era * 400 + year_of_era + i64::from(month <= 2), month, day)
    }

    /// Day of the year, from 0.
    fn year_day(self) -> i64 {
        let (year, month, day) = self.date();
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][month as usize - 1];
        before + day - 1 + i64::from(leap && month > 2)
    }

    /// Formats it by C's directives (`%Y-%m-%d`), in English. `%-d` and the like leave zeros out; a directive that is
    /// not known stays as it is. Names and offsets of zones are empty, as for Python's `datetime.now()`.
    pub(crate) fn strftime(self, format: &str) -> String {
        let mut out = String::with_capacity(format.len() * 2);
        let mut rest = format;
        while let Some((before, after)) = rest.split_once('%') {
            out.push_str(before);
            let flag = after.chars().next().filter(|c| matches!(c, '-' | '_' | '0' | '^'));
            let directive = &after[flag.map_or(0, char::len_utf8)..];
            let Some(letter) = directive.chars().next() else {
                out.push('%');
                rest = after;
                break;
            };
            rest = &directive[letter.len_utf8()..];
            match self.directive(letter) {
                Some(Field::Number(value, width, pad)) => {
                    let text = value.to_string();
                    let pad = match flag {
                        Some('-') => None,
                        Some('_') => Some(' '),
                        Some('0') => Some('0'),
                        _ => Some(pad),
                    };
                    out.extend(
                        pad.into_iter()
                            .flat_map(|pad| std::iter::repeat_n(pad, width.saturating_sub(text.len()))),
                    );
                    out.push_str(&text);
                }
                Some(Field::Text(text)) if flag == Some('^') => out.push_str(&text.to_uppercase()),
                Some(Field::Text(text)) => out.push_str(&text),
                None => {
                    out.push('%');
                    out.extend(flag);
                    out.push(letter);
                }
            }
        }
        out.push_str(rest);
        out
    }

    fn directive(self, letter: char) -> Option<Field> {
        let (year, month, day) = self.date();
        let of_day = self.seconds.rem_euclid(86_400);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        let hour12 = if hour % 12 == 0 { 12 } else { hour % 12 };
        // 1970-01-01 was a Thursday.
        let week_day = (self.seconds.div_euclid(86_400) + 4).rem_euclid(7);
        let month_name = MONTHS[month as usize - 1];
        let day_name = DAYS[week_day as usize];
        let two = |value| Some(Field::Number(value, 2, '0'));
        let text = |text: &str| Some(Field::Text(text.to_owned()));
        let composed = |format| Some(Field::Text(self.strftime(format)));
        match letter {
            'Y' => Some(Field::Number(year, 1, '0')),
            'C' => two(year / 100),
            'y' => two(year % 100),
            'm' => two(month),
            'd' => two(day),
            'e' => Some(Field::Number(day, 2, ' ')),
            'H' => two(hour),
            'I' => two(hour12),
            'k' => Some(Field::Number(hour, 2, ' ')),
            'l' => Some(Field::Number(hour12, 2, ' ')),
            'M' => two(minute),
            'S' => two(second),
            'f' => Some(Field::Number(0, 6, '0')),
            'j' => Some(Field::Number(self.year_day() + 1, 3, '0')),
            'u' => Some(Field::Number(if week_day == 0 { 7 } else { week_day }, 1, '0')),
            'w' => Some(Field::Number(week_day, 1, '0')),
            'U' => two((self.year_day() + 7 - week_day) / 7),
            'W' => two((self.year_day() + 7 - (week_day + 6) % 7) / 7),
            'B' => text(month_name),
            'b' | 'h' => text(&month_name[..3]),
            'A' => text(day_name),
            'a' => text(&day_name[..3]),
            'p' => text(if hour < 12 { "AM" } else { "PM" }),
            'P' => text(if hour < 12 { "am" } else { "pm" }),
            's' => Some(Field::Number(self.seconds, 1, '0')),
            'z' | 'Z' => text(""),
            'n' => text("\n"),
            't' => text("\t"),
            '%' => text("%"),
            'F' => composed("%Y-%m-%d"),
            'T' | 'X' => composed("%H:%M:%S"),
            'R' => composed("%H:%M"),
            'r' => composed("%I:%M:%S %p"),
            'D' | 'x' => composed("%m/%d/%y"),
            'c' => composed("%a %b %e %H:%M:%S %Y"),
            _ => None,
        }
    }
}

/// What a directive stands for.
enum Field {
    /// Value, least width, and what fills it up.
    Number(i64, usize, char),
    Text(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_as_c_has_them() {
        let moment = Moment::from_unix(1_709_251_445); // 2024-03-01 00:04:05, after a leap day
        for (format, expected) in [
            ("%d %b %Y", "01 Mar 2024"),
            ("%Y-%m-%d %H:%M:%S", "2024-03-01 00:04:05"),
            ("%-d.%-m.%y|%e|%_m", "1.3.24| 1| 3"),
            ("%A, %B %a %^b", "Friday, March Fri MAR"),
            ("%I:%M %p %l %P", "12:04 AM 12 am"),
            ("%j %U %W %u %w %C", "061 08 09 5 5 20"),
            ("%F %T %D %R", "2024-03-01 00:04:05 03/01/24 00:04"),
            ("%c", "Fri Mar  1 00:04:05 2024"),
            ("100%% %Q %-Q %", "100% %Q %-Q %"),
            ("%z%Z|%s", "|1709251445"),
        ] {
            assert_eq!(moment.strftime(format), expected, "{format}");
        }
        for (seconds, expected) in [
            (0, "1970-01-01 001 4"),
            (-1, "1969-12-31 365 3"),
            (951_782_400, "2000-02-29 060 2"),
            (4_107_542_399, "2100-02-28 059 0"),
            (4_107_542_400, "2100-03-01 060 1"),
            (i64::MAX, "9999-12-31 365 5"),
            (i64::MIN, "0-01-01 001 6"),
        ] {
            assert_eq!(Moment::from_unix(seconds).strftime("%F %j %w"), expected);
        }
    }
}
