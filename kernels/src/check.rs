//! The kernel check: every family on many shapes against its references.

use crate::cpu::Pool;
use crate::family::{Case, Family, families};
use crate::fault;
use crate::space::Config;
use crate::{KernelKey, testdata::Random};
use serde::Serialize;
use std::collections::BTreeMap;

/// Configurations tried for one key, the default among them.
const CONFIGS: usize = 16;

/// What outputs are filled with before a launch: two fills, so that a value that is left alone differs in one.
const POISONS: [u32; 2] = [0x7fc0_dead, 0x7149_f2ca];

/// Values before and after an output that must stay as they were.
const GUARD: usize = 64;

/// Outcome of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Everything held.
    Pass,
    /// Something did not; the row's reason says what.
    Fail,
}

/// One row of the check's table.
#[derive(Clone, Debug, Serialize)]
pub struct CheckRow {
    /// Kernel family.
    pub family: String,
    /// What was checked, as a kernel key prints.
    pub key: String,
    /// Outcome.
    pub status: Status,
    /// Largest error found, in units of the tolerance (at most 1 passes).
    pub max_err: f64,
    /// Configurations run.
    pub configs: usize,
    /// Why it failed.
    pub reason: Option<String>,
}

/// Checks every family at those of its keys that are `wanted`. The results of the family named `fault` are spoilt on
/// purpose, to prove that the check notices.
///
/// For each key: outputs equal for two poison fills, guard bands and inputs untouched, errors within the tolerance of the
/// f64 reference, the bits of the ordered reference where the family has one, and the same bits for all configurations
/// of one order key and on one thread.
pub fn run(wanted: &dyn Fn(&KernelKey) -> bool, fault: Option<&str>, pool: &Pool) -> Vec<CheckRow> {
    let single = Pool::new(1);
    let mut rows = Vec::new();
    for family in families() {
        for (i, key) in family.check_keys().into_iter().enumerate() {
            if wanted(&key) {
                let faulty = fault == Some(family.name());
                let check = Check { family: *family, key, faulty, pools: [pool, &single] };
                rows.push(check.row(i as u64));
            }
        }
    }
    rows
}

struct Check<'a> {
    family: &'a dyn Family,
    key: KernelKey,
    faulty: bool,
    pools: [&'a Pool; 2],
}

impl Check<'_> {
    fn row(&self, seed: u64) -> CheckRow {
        let (mut max_err, configs) = (0.0, self.configs(seed));
        let reason = self.check(seed, &configs, &mut max_err).err();
        CheckRow {
            family: self.family.name().to_owned(),
            key: self.key.to_string(),
            status: if reason.is_none() { Status::Pass } else { Status::Fail },
            max_err,
            configs: configs.len(),
            reason,
        }
    }

    /// The default, then others drawn without repetition.
    fn configs(&self, seed: u64) -> Vec<Config> {
        let threads = self.pools[0].threads();
        let default = self.family.default_config(&self.key, threads);
        let mut others: Vec<Config> =
            self.family.space(&self.key, threads).feasible().filter(|c| *c != default).collect();
        let mut random = Random::new(seed);
        let mut chosen = vec![default];
        while chosen.len() < CONFIGS && !others.is_empty() {
            let at = (random.bits() % others.len() as u64) as usize;
            chosen.push(others.swap_remove(at));
        }
        chosen
    }

    fn check(&self, seed: u64, configs: &[Config], max_err: &mut f64) -> Result<(), String> {
        let case = self.family.case(&self.key, seed, self.pools[0])?;
        let hash = case.inputs_hash();
        let (reference, ordered) = (case.reference(), case.ordered());
        let mut orders: BTreeMap<String, Vec<f32>> = BTreeMap::new();
        for config in configs {
            for pool in self.pools {
                let fail = |problem: String| format!("[{config}] on {} threads: {problem}", pool.threads());
                let out = self.launch(&*case, pool, config).map_err(fail)?;
                *max_err = max_err.max(worst(&out, &reference).map_err(fail)?);
                if *max_err > 1.0 {
                    return Err(fail(format!("error of {max_err:.3} times the tolerance")));
                }
                if let Some(ordered) = &ordered {
                    same_bits(&out, ordered).map_err(|e| fail(format!("ordered reference: {e}")))?;
                }
                let order = self.family.order_key(&self.key, config);
                if let Some(first) = orders.get(&order) {
                    same_bits(&out, first).map_err(|e| fail(format!("same order key {order}: {e}")))?;
                } else {
                    orders.insert(order, out);
                }
            }
        }
        if case.inputs_hash() == hash { Ok(()) } else { Err("an input was written to".to_owned()) }
    }

    /// The output, after two launches into differently poisoned memory.
    fn launch(&self, case: &dyn Case, pool: &Pool, config: &Config) -> Result<Vec<f32>, String> {
        let mut outputs = Vec::new();
        for poison in POISONS {
            let fill = f32::from_bits(poison);
            let mut memory = vec![fill; case.out_len() + 2 * GUARD];
            let end = memory.len() - GUARD;
            case.launch(pool, config, &mut memory[GUARD..end])?;
            if memory[..GUARD].iter().chain(&memory[end..]).any(|v| v.to_bits() != poison) {
                return Err("wrote outside its output".to_owned());
            }
            let mut out = memory[GUARD..end].to_vec();
            if self.faulty {
                fault::corrupt(&mut out);
            }
            outputs.push(out);
        }
        same_bits(&outputs[0], &outputs[1]).map_err(|e| format!("two launches differ: {e}"))?;
        Ok(outputs.swap_remove(0))
    }
}

/// The largest error in units of its tolerance.
fn worst(out: &[f32], reference: &[(f64, f64)]) -> Result<f64, String> {
    let mut worst = 0f64;
    for (i, (got, (want, tolerance))) in out.iter().zip(reference).enumerate() {
        let error = (f64::from(*got) - want).abs();
        if error.is_nan() {
            return Err(format!("output {i} is {got}, the reference has {want}"));
        }
        if error > 0.0 {
            worst = worst.max(error / tolerance);
        }
    }
    Ok(worst)
}

fn same_bits(a: &[f32], b: &[f32]) -> Result<(), String> {
    match a.iter().zip(b).position(|(a, b)| a.to_bits() != b.to_bits()) {
        Some(i) => Err(format!("output {i} is {:e} and {:e}", a[i], b[i])),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_passes() {
        let rows = run(&|_| true, None, &Pool::new(2));
        for row in &rows {
            assert_eq!(row.status, Status::Pass, "{}: {:?}", row.key, row.reason);
        }
        for family in families() {
            let of = rows.iter().filter(|r| r.family == family.name());
            let (count, err) = of.fold((0, 0f64), |(n, e), r| (n + 1, e.max(r.max_err)));
            assert!(count > 1, "{} is not checked", family.name());
            // Copies are exact, and a tolerance a hundred times the error would not notice much.
            let exact = ["embed", "gather_slots"].contains(&family.name());
            assert!(err > 0.01 || exact, "{}: {err}", family.name());
        }
    }

    #[test]
    fn a_fault_planted_in_any_family_is_noticed_and_only_there() {
        let pool = Pool::new(2);
        for family in families() {
            for row in run(&|key| key.m == 9, Some(family.name()), &pool) {
                let want = if row.family == family.name() { Status::Fail } else { Status::Pass };
                assert_eq!(row.status, want, "{} with a fault in {}", row.key, family.name());
            }
        }
    }

    #[test]
    fn the_filter_selects_by_what_the_key_prints() {
        let rows = run(&|key| key.to_string().starts_with("matmul/Q4_1/q8/decode n=17"), None, &Pool::new(1));
        assert_eq!(rows.len(), 9);
        assert!(run(&|_| false, None, &Pool::new(1)).is_empty());
    }

    #[test]
    fn the_planted_configuration_is_wrong() {
        let family = crate::family::family("matmul").unwrap();
        let pool = Pool::new(1);
        let key = family.check_keys().into_iter().find(|k| k.m == 9).unwrap();
        let case = family.case(&key, 1, &pool).unwrap();
        let planted: Vec<Config> =
            family.space_with_planted(&key, 1).feasible().filter(|c| c.get("planted") == Some(1)).collect();
        assert!(!planted.is_empty());
        let mut out = vec![0f32; case.out_len()];
        case.launch(&pool, &planted[0], &mut out).unwrap();
        assert!(worst(&out, &case.reference()).unwrap() > 1.0);
        assert!(family.space(&key, 1).validate(&planted[0]).is_err());
    }
}
