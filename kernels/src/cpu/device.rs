//! The name under which this machine's measurements are kept, and how many cores it really has.

use super::Isa;
use std::collections::BTreeSet;

/// Threads worth using: physical cores, less what affinity or a container quota takes away; at least one.
pub fn physical_cores() -> usize {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let listed = Cpu::parse(&cpuinfo()).cores;
    if listed == 0 { available } else { listed.min(available) }
}

/// The device class of this machine's CPU, such as `intel-xeon-processor-f6m207-2c-avx512`: what dispatch tables and
/// device ledgers are keyed by. Two machines of one class should want the same configurations.
pub fn device_class() -> String {
    Cpu::parse(&cpuinfo()).class(physical_cores(), Isa::detect())
}

/// This machine's CPU as the vendor names it, or `unknown CPU`.
pub fn cpu_name() -> String {
    let name = Cpu::parse(&cpuinfo()).name;
    if name.is_empty() { "unknown CPU".to_owned() } else { name }
}

/// Empty where the system has no such file: every field then falls back.
fn cpuinfo() -> String {
    std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()
}

#[derive(Debug, Default, PartialEq)]
struct Cpu {
    name: String,
    family: String,
    model: String,
    /// Distinct (socket, core) pairs; 0 where the text does not say.
    cores: usize,
}

impl Cpu {
    fn parse(text: &str) -> Cpu {
        let mut cpu = Cpu::default();
        let mut pairs = BTreeSet::new();
        let mut socket = String::new();
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match key.trim() {
                "model name" if cpu.name.is_empty() => cpu.name = value.to_owned(),
                "cpu family" if cpu.family.is_empty() => cpu.family = value.to_owned(),
                "model" if cpu.model.is_empty() => cpu.model = value.to_owned(),
                "physical id" => value.clone_into(&mut socket),
                "core id" => _ = pairs.insert((socket.clone(), value.to_owned())),
                _ => {}
            }
        }
        cpu.cores = pairs.len();
        cpu
    }

    fn class(&self, cores: usize, isa: Isa) -> String {
        // Marks, the word CPU and the clock say nothing that family and model do not.
        let name = self.name.split('@').next().unwrap_or_default().replace("(R)", " ").replace("(TM)", " ");
        let mut class = String::new();
        for word in name.split(|c: char| !c.is_ascii_alphanumeric()) {
            let word = word.to_ascii_lowercase();
            if !word.is_empty() && word != "cpu" {
                class.push_str(&word);
                class.push('-');
            }
        }
        if class.is_empty() {
            class.push_str("cpu-");
            class.push_str(std::env::consts::ARCH);
            class.push('-');
        }
        if !self.family.is_empty() && !self.model.is_empty() {
            class.push_str(&format!("f{}m{}-", self.family, self.model));
        }
        format!("{class}{cores}c-{isa}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hyperthreads_are_one_core_and_the_class_is_a_file_name() {
        let one = "model name\t: Intel(R) Core(TM) i7-9700 CPU @ 3.00GHz\ncpu family\t: 6\nmodel\t\t: 158\n";
        let text = format!(
            "{one}physical id\t: 0\ncore id\t: 0\n\n{one}physical id\t: 0\ncore id\t: 0\n\n{one}physical id\t: 0\ncore id\t: 1\n"
        );
        let cpu = Cpu::parse(&text);
        assert_eq!(cpu.cores, 2);
        assert_eq!(cpu.class(2, Isa::Avx2), "intel-core-i7-9700-f6m158-2c-avx2");
        assert_eq!(
            Cpu::default().class(4, Isa::Portable),
            format!("cpu-{}-4c-portable", std::env::consts::ARCH)
        );
        assert!(physical_cores() >= 1);
        assert!(device_class().chars().all(|c| c.is_ascii_alphanumeric() || c == '-'));
    }
}
