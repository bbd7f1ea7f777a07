//! Exit codes of commands that judge, and which of several wins.

use serde::Serialize;

/// What a judging command tells the shell. Variants are in order of precedence: of several, the first one here wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// 7: a log or table cannot be trusted, so nothing said on top of it can.
    Corrupt,
    /// 130: interrupted; whole blocks were judged, the log is intact.
    Interrupted,
    /// 4: wrong results.
    Incorrect,
    /// 1: slower.
    Regressed,
    /// 2: asked for something that cannot be done.
    Usage,
    /// 5: the machine or the harness could not measure.
    Unfit,
    /// 6: a rival failed, or its runs are absurd.
    CompetitorFailed,
    /// 3: not decided.
    Inconclusive,
    /// 0: not slower.
    Pass,
}

impl Code {
    const NUMBERS: [(Code, u8); 9] = [
        (Code::Corrupt, 7),
        (Code::Interrupted, 130),
        (Code::Incorrect, 4),
        (Code::Regressed, 1),
        (Code::Usage, 2),
        (Code::Unfit, 5),
        (Code::CompetitorFailed, 6),
        (Code::Inconclusive, 3),
        (Code::Pass, 0),
    ];

    /// The number for the shell.
    pub fn number(self) -> u8 {
        Code::NUMBERS[self as usize].1
    }

    /// Words for people.
    pub fn words(self) -> &'static str {
        match self {
            Code::Corrupt => "data corrupt",
            Code::Interrupted => "interrupted",
            Code::Incorrect => "incorrect",
            Code::Regressed => "regressed",
            Code::Usage => "wrongly asked",
            Code::Unfit => "unfit",
            Code::CompetitorFailed => "competitor failed",
            Code::Inconclusive => "inconclusive",
            Code::Pass => "pass",
        }
    }

    /// The code with this number.
    pub fn from_number(number: i32) -> Option<Code> {
        Code::NUMBERS.iter().find(|(_, n)| i32::from(*n) == number).map(|(code, _)| *code)
    }

    /// The one that wins; `Pass` of none.
    pub fn worst(codes: impl IntoIterator<Item = Code>) -> Code {
        codes.into_iter().min().unwrap_or(Code::Pass)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_and_the_table_is_in_enum_order() {
        for (i, (code, number)) in Code::NUMBERS.into_iter().enumerate() {
            assert_eq!(code as usize, i);
            assert_eq!(code.number(), number);
            assert_eq!(Code::from_number(number.into()), Some(code));
        }
        assert_eq!(Code::from_number(101), None);
    }

    #[test]
    fn wrong_results_beat_slow_ones_and_slow_ones_beat_doubt() {
        assert_eq!(Code::worst([Code::Pass, Code::Inconclusive, Code::Regressed]), Code::Regressed);
        assert_eq!(Code::worst([Code::Regressed, Code::Incorrect]), Code::Incorrect);
        assert_eq!(Code::worst([]), Code::Pass);
    }
}
