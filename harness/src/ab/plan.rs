//! What a comparison is to do.

use crate::record::{ArmId, Competitor, Design, Look, TestShape};
use crate::stats::{LOOKS, MIN_MARGIN, QUICK};
use crate::subject::{Ask, Subject};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::Duration;

/// A comparison of two subjects on one model.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Arm A: the base. Its noise is the floor.
    pub a: Subject,
    /// Arm B.
    pub b: Subject,
    /// The model file.
    pub model: PathBuf,
    /// Tests, one cell each.
    pub tests: Vec<TestShape>,
    /// When the pairs are looked at.
    pub looks: Vec<Look>,
    /// Pairs of arm A against itself.
    pub floor_pairs: u32,
    /// Least margin, as a ratio; twice a cell's variation is used where that is more.
    pub margin: f64,
    /// Timed repetitions a launch, at least.
    pub reps: u32,
    /// Time that they take together, at least: a cell with short repetitions gets more of them, so that a launch's
    /// median shrugs off what disturbs the machine for a moment.
    pub min_timed: Duration,
    /// Threads a launch.
    pub threads: u32,
    /// Seed of the block starts.
    pub seed: u64,
    /// A launch that takes longer is ended.
    pub run_limit: Duration,
    /// A launch during which others took more of the machine's CPU time than this is redone, twice at most.
    pub max_foreign_cpu: f64,
    /// Read bandwidth of this machine for data of the model's size, where measured.
    pub wall_gbps: Option<f64>,
}

impl Plan {
    /// The standard comparison: pp512 and tg128, looks at 6, 10, 16 and 20 pairs, six pairs for the floor.
    pub fn new(a: Subject, b: Subject, model: PathBuf, threads: u32) -> Plan {
        Plan {
            a,
            b,
            model,
            tests: vec![
                TestShape { n_prompt: 512, n_gen: 0, n_depth: 0 },
                TestShape { n_prompt: 0, n_gen: 128, n_depth: 0 },
            ],
            looks: LOOKS.to_vec(),
            floor_pairs: 6,
            margin: MIN_MARGIN,
            reps: 5,
            min_timed: Duration::from_secs(1),
            threads,
            seed: 1,
            run_limit: Duration::from_secs(300),
            max_foreign_cpu: 0.1,
            wall_gbps: None,
        }
    }

    /// The short form: one look at six pairs, four pairs for the floor, three repetitions a launch.
    pub fn quick(self) -> Plan {
        Plan { looks: QUICK.to_vec(), floor_pairs: 4, reps: 3, ..self }
    }

    /// The subject of an arm.
    pub fn subject(&self, arm: ArmId) -> &Subject {
        match arm {
            ArmId::A => &self.a,
            ArmId::B => &self.b,
        }
    }

    /// The arm that is judged: B, or A where only B is a rival.
    pub fn candidate(&self) -> ArmId {
        if self.b.is_rival() && !self.a.is_rival() { ArmId::A } else { ArmId::B }
    }

    pub(super) fn ask(&self, test: TestShape, reps: u32) -> Ask {
        Ask { model: self.model.clone(), test, reps, threads: self.threads }
    }

    /// Repetitions that make up the least time, if each takes `sample_ns`.
    pub(super) fn reps_for(&self, sample_ns: f64) -> u32 {
        const MOST: f64 = 101.0;
        let needed = (self.min_timed.as_nanos() as f64 / sample_ns.max(1.0)).ceil();
        self.reps.max(needed.min(MOST) as u32)
    }

    /// The design as a session records it.
    pub fn design(&self) -> Design {
        Design { order: "abba".to_owned(), seed: self.seed, looks: self.looks.clone(), margin: self.margin }
    }

    /// The rivals that take part, as a session records them.
    pub fn competitors(&self) -> Vec<Competitor> {
        let rivals = [&self.a, &self.b].into_iter().filter(|subject| subject.is_rival());
        rivals.map(competitor).collect()
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        let rising = self.looks.windows(2).all(|pair| pair[0].pairs < pair[1].pairs);
        if self.tests.is_empty() || self.reps == 0 || self.threads == 0 {
            Err("a comparison needs at least one test, one repetition and one thread".to_owned())
        } else if self.looks.is_empty() || !rising || self.looks.iter().any(|look| look.pairs % 2 == 1) {
            Err("looks must be at rising, even numbers of pairs: blocks hold two".to_owned())
        } else if self.floor_pairs < 2 || self.floor_pairs % 2 == 1 {
            Err("the noise floor needs an even number of pairs, at least two".to_owned())
        } else if !(0.0..1.0).contains(&self.margin) {
            Err(format!("a margin of {} is not between 0 and 1", self.margin))
        } else {
            Ok(())
        }
    }
}

/// A rival as a session records it.
pub(crate) fn competitor(subject: &Subject) -> Competitor {
    let list = |args: &[String]| Value::from(args.to_vec());
    let mut flags = Map::new();
    flags.insert("args".into(), list(&subject.manifest.bench.args));
    flags.insert("prompt".into(), list(&subject.manifest.bench.prompt.args));
    flags.insert("decode".into(), list(&subject.manifest.bench.decode.args));
    Competitor {
        name: subject.manifest.name.clone(),
        version: subject.version.clone(),
        commit: None,
        binary_hash: Some(subject.binary_hash.clone()),
        flags,
    }
}
