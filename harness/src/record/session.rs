//! Provenance: what measured, on what, by which design.

use super::Extra;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Provenance of all records with the same `session_id`; written first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// The command that measured: `ab`, `gate`, `sweep`, `bench`, `probe`, `nightly`.
    pub command: String,
    /// What measured.
    pub tool: Tool,
    /// The machine.
    pub host: Host,
    /// Device class of the dispatch table, such as `cpu-avx512vnni-2c`.
    pub device_class: String,
    /// Instruction set used by memra's CPU kernels.
    pub isa: String,
    /// How runs were ordered and judged; `null` where nothing is compared.
    pub design: Option<Design>,
    /// Rivals that took part.
    pub competitors: Vec<Competitor>,
    /// Unknown keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The memra binary that measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// Package version.
    pub version: String,
    /// Commit of the checkout it was run from; `null` outside one.
    pub git_sha: Option<String>,
    /// Whether that checkout had changes.
    pub git_dirty: Option<bool>,
    /// SHA-256 of the binary, hex.
    pub binary_hash: String,
    /// Compiler that built it.
    pub rustc: String,
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Operating system, such as `Debian GNU/Linux 12 (bookworm)`.
    pub os: String,
    /// Kernel release.
    pub kernel: String,
    /// CPU model name.
    pub cpu_model: String,
    /// Logical cores this process may use.
    pub n_cores: u32,
    /// Installed memory.
    pub ram_bytes: u64,
    /// cpufreq governor of core 0; `null` where not readable.
    pub governor: Option<String>,
    /// Salted hash of the machine's identity, first 16 hex digits.
    pub host_id_hash: String,
}

/// How runs were ordered and when the comparison may stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// Order of arms, such as `abba`.
    pub order: String,
    /// Seed of the random block starts.
    pub seed: u64,
    /// When the data are looked at, and how sure each look must be.
    pub looks: Vec<Look>,
    /// Margin asked for, as a ratio (0.01 = 1 %); a cell's own may be larger.
    pub margin: f64,
}

/// One look of the sequential design.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Valid pairs needed.
    pub pairs: u32,
    /// Confidence of the interval used at this look.
    pub conf: f64,
}

/// A rival as it took part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Competitor {
    /// Name of its manifest.
    pub name: String,
    /// What its version command printed, first line.
    pub version: String,
    /// Build commit, where it says so.
    pub commit: Option<String>,
    /// SHA-256 of its binary, hex.
    pub binary_hash: Option<String>,
    /// Flags it was launched with.
    pub flags: Map<String, Value>,
}
