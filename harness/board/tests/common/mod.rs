//! A made-up data folder: two rivals' worth of comparisons, runs, and a sweep, with fixed IDs and times.

use memra_harness::record::{Arm, ArmId, Body, Host, Judgement, Label, Record, SCHEMA, Session, Tool};
use serde_json::{Map, Value, json};
use std::{fs, path::Path};

/// One session's records.
pub(crate) struct Fixture {
    session: u32,
    day: u32,
    /// The read wall that runs are told.
    pub(crate) wall_gbps: Option<f64>,
    records: Vec<Record>,
}

/// A comparison to make up.
pub(crate) struct Compared<'a> {
    pub(crate) cell: &'a str,
    pub(crate) a: Arm,
    pub(crate) b: Arm,
    pub(crate) candidate: ArmId,
    /// B's throughput over A's, with its interval.
    pub(crate) ratio: Option<(f64, f64, f64)>,
    pub(crate) tps_a: f64,
    pub(crate) verdict: Judgement,
    pub(crate) label: Option<Label>,
    pub(crate) reasons: &'a [&'a str],
}

pub(crate) fn memra(subject: &str) -> Arm {
    let mut flags = flags(json!({"n_threads": 2, "memra_class": "q8"}));
    if let Some((key, value)) = subject.strip_prefix("config:").and_then(|overlay| overlay.split_once('=')) {
        flags.insert(format!("overlay.{}", key.replace("slow", "fault.slow")), json!(value));
    }
    Arm { subject: subject.into(), engine: "memra".into(), version: "memra 0.1.0".into(), flags }
}

pub(crate) fn llama_cpp() -> Arm {
    let flags = flags(json!({"build_number": 11434, "n_threads": 2, "flash_attn": true, "type_k": "f16"}));
    let version = "version: 0.6.0-dev (build 11434, commit abc)".into();
    Arm { subject: "llama.cpp".into(), engine: "llama.cpp".into(), version, flags }
}

fn flags(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

impl Fixture {
    /// Begins session `session` on day `day` of November 2026.
    pub(crate) fn new(session: u32, day: u32, command: &str) -> Fixture {
        Fixture::on(session, day, command, "Intel Xeon Platinum 8481C", "0123456789abcdef")
    }

    pub(crate) fn on(session: u32, day: u32, command: &str, cpu: &str, host: &str) -> Fixture {
        let mut fixture = Fixture { session, day, wall_gbps: Some(12.5), records: Vec::new() };
        fixture.push(Session {
            command: command.into(),
            tool: Tool {
                version: "0.1.0".into(),
                git_sha: Some("abcdef0123456789".into()),
                ..Tool::default()
            },
            host: Host { cpu_model: cpu.into(), n_cores: 2, host_id_hash: host.into(), ..Host::default() },
            device_class: "cpu-avx512vnni-2c".into(),
            ..Session::default()
        });
        fixture
    }

    /// Adds a record; its ID.
    pub(crate) fn push(&mut self, body: impl Into<Body>) -> String {
        let n = self.records.len();
        let id = format!("01KA{:04}{:04}FFFF{:010}", self.session, n, n * 7919 + self.session as usize);
        let (session_id, day) = (format!("01KA{:04}SESSION00000000", self.session), self.day);
        let at = format!("2026-11-{day:02}T03:{:02}:{:02}.000Z", n / 60 % 60, n % 60);
        self.records.push(Record {
            schema: SCHEMA.into(),
            id: id.clone(),
            session_id,
            at,
            body: body.into(),
        });
        id
    }

    /// Adds a record from its JSON, so that keys which the schema gains with a default need not be named here.
    fn push_json(&mut self, body: Value) -> String {
        self.push(serde_json::from_value::<Body>(body).unwrap())
    }

    /// Adds a run with five repetitions around `tps`.
    pub(crate) fn run(&mut self, cell: &str, arm: &Arm, of: Option<ArmId>, tps: f64) -> String {
        let (model, test) = cell.rsplit_once('/').unwrap();
        let samples_tps = [-0.004, 0.002, 0.0, -0.001, 0.006].map(|d| tps * (1.0 + d));
        let tokens = if test.starts_with("pp") { 512.0 } else { 128.0 };
        let bench = if arm.engine == "memra" { "memra" } else { "llama-bench" };
        self.push_json(json!({
            "kind": "run", "cell_id": cell, "test": {"n_prompt": 0, "n_gen": 0, "n_depth": 0},
            "phase": if of.is_some() { "pair" } else { "single" },
            "arm": of, "pair": of.map(|_| 0), "pos": of.map(|_| 0),
            "subject": arm.subject, "engine": arm.engine, "engine_version": arm.version, "flags": arm.flags,
            "argv": [format!("/opt/{bench}"), "-m", format!("/models/{model}.gguf"), "-r", "5"],
            "exit": {"code": 0, "signal": null, "timeout": false},
            "model": {"name": model, "file_hash": "", "size_bytes": 0},
            "samples_ns": samples_tps.map(|tps| (tokens / tps * 1e9) as u64),
            "samples_tps": samples_tps, "median_tps": tps, "warmup_ns": [],
            "bytes_per_token": (arm.engine == "memra").then_some(90_000_000), "wall_gbps": self.wall_gbps,
            "regime": {}, "duration_ns": 1_000_000_000, "status": "ok",
        }))
    }

    /// Adds six pairs and their verdict; the verdict's ID.
    pub(crate) fn compare(&mut self, c: Compared) -> String {
        let tps_b = c.ratio.map(|r| c.tps_a * r.0);
        let mut run_ids = Vec::new();
        if let Some(tps_b) = tps_b {
            for pair in 0..6 {
                let wobble = 1.0 + 0.003 * (f64::from(pair) - 2.5) / 2.5;
                run_ids.push(self.run(c.cell, &c.a, Some(ArmId::A), c.tps_a * wobble));
                run_ids.push(self.run(c.cell, &c.b, Some(ArmId::B), tps_b / wobble));
            }
        }
        self.push_json(json!({
            "kind": "verdict", "cell_id": c.cell, "a": c.a, "b": c.b, "candidate": c.candidate,
            "n_pairs": run_ids.len() / 2, "n_invalid": u32::from(c.ratio.is_none()),
            "ratio": c.ratio.map(|r| r.0), "ci_lo": c.ratio.map(|r| r.1), "ci_hi": c.ratio.map(|r| r.2),
            "conf": c.ratio.map(|_| 0.96875), "pairs_agree": run_ids.len() / 2,
            "median_a_tps": c.ratio.map(|_| c.tps_a), "median_b_tps": tps_b, "mde_ratio": 0.012,
            "floor_ratio": 0.01, "floor_provisional": true, "margin": 0.02, "look": 1,
            "verdict": c.verdict, "label": c.label, "reasons": c.reasons, "identical_binaries": false,
            "run_ids": run_ids,
        }))
    }

    /// Adds one visit of a configuration of a matrix product; its ID.
    pub(crate) fn trial(&mut self, strategy: &str, rows: i64, ns: u64) -> String {
        let key = json!({"family": "matmul", "dtype": "Q4_1", "class": "q8", "path": "decode", "n": 576, "k": 1536, "m": 1});
        self.push_json(json!({
            "kind": "trial", "key": key, "source_hash": "5eed", "config": {"rows": rows, "chunk": 64},
            "config_id": format!("chunk=64,rows={rows}"), "strategy": strategy, "round": 0,
            "verify": {"status": "passed", "max_err": 0.0, "reason": null},
            "samples_ns": [ns - 1, ns, ns + 1], "cache_state": "cold", "status": "ok", "reason": null,
        }))
    }

    /// Writes the session's log below `data`.
    pub(crate) fn write(&self, data: &Path) {
        let dir = data.join("2026-11");
        fs::create_dir_all(&dir).unwrap();
        let (mut main, mut trials) = (String::new(), String::new());
        for record in &self.records {
            let json = serde_json::to_string(record).unwrap();
            let line = format!(
                "{},\"crc\":\"{:08x}\"}}\n",
                &json[..json.len() - 1],
                crc32c::crc32c(json.as_bytes())
            );
            let Body::Trial(trial) = &record.body else {
                main += &line;
                continue;
            };
            // As the harness does: trials that the dispatch table cites are kept in the main file as well.
            trials += &line;
            if trial.strategy == "confirm" {
                main += &line;
            }
        }
        let name = format!("01KA{:04}SESSION00000000", self.session);
        fs::write(dir.join(format!("{name}.jsonl")), main).unwrap();
        if !trials.is_empty() {
            fs::write(dir.join(format!("{name}.trials.jsonl")), trials).unwrap();
        }
    }
}

pub(crate) const SMOL: &str = "SmolLM2-135M-Instruct.Q4_1";

/// Everything at once: a win, a loss, a draw, an invalid cell, a baseline, planted faults, a bench, a sweep.
pub(crate) fn whole(data: &Path) {
    let cell = |test: &str| format!("{SMOL}/{test}");
    let mut ab = Fixture::new(1, 2, "ab");
    let rival = |cell: &'static str, ratio, tps_a, verdict, label| Compared {
        cell,
        a: memra("self"),
        b: llama_cpp(),
        candidate: ArmId::A,
        ratio,
        tps_a,
        verdict,
        label,
        reasons: &[],
    };
    let (pp, tg) = ("SmolLM2-135M-Instruct.Q4_1/pp512", "SmolLM2-135M-Instruct.Q4_1/tg128");
    let tg32 = "SmolLM2-135M-Instruct.Q4_1/tg32";
    ab.compare(rival(pp, Some((1.12, 1.10, 1.14)), 900.0, Judgement::Regressed, None));
    ab.compare(rival(tg, Some((0.9, 0.89, 0.91)), 97.8, Judgement::Pass, Some(Label::Improved)));
    ab.compare(rival(tg32, Some((1.001, 0.992, 1.011)), 99.0, Judgement::Pass, Some(Label::Equivalent)));
    ab.compare(Compared {
        reasons: &["llama-bench ended by signal 9 after 0 of 5 repetitions"],
        ..rival("gemma-3-270m-it-Q4_K_M/tg128", None, 60.0, Judgement::CompetitorFailed, None)
    });
    ab.run(&cell("tg128@d6144"), &memra("self"), None, 71.3);
    ab.write(data);

    let mut gate = Fixture::new(2, 3, "gate");
    let baseline = |overlay: &str, ratio, verdict, label| Compared {
        cell: tg,
        a: memra("self"),
        b: memra(overlay),
        candidate: ArmId::B,
        ratio,
        tps_a: 98.0,
        verdict,
        label,
        reasons: &[],
    };
    gate.compare(baseline("config:dispatch=default", Some((0.81, 0.80, 0.82)), Judgement::Regressed, None));
    gate.compare(baseline("config:slow=3%", Some((0.97, 0.966, 0.974)), Judgement::Regressed, None));
    gate.compare(Compared {
        reasons: &["check: matmul/Q4_1 differs from its reference"],
        ..baseline("config:wrong=matmul", None, Judgement::Incorrect, None)
    });
    gate.write(data);

    let mut sweep = Fixture::new(3, 2, "sweep");
    sweep.trial("pilot", 1, 1000);
    for (rows, ns) in [(1, 1002), (2, 900), (4, 700), (8, 760), (16, 1200)] {
        sweep.trial("exhaustive", rows, ns);
    }
    let evidence = [sweep.trial("confirm", 1, 1001), sweep.trial("confirm", 4, 702)];
    sweep.write(data);
    fs::create_dir_all(data.join("dispatch")).unwrap();
    let table = format!(
        "format = 1\ndevice_class = \"cpu-avx512vnni-2c\"\n\n[[entry]]\norder = \"o\"\nsource_hash = \"5eed\"\n\
         expected_ns = 702\nspeedup_over_default = 1.426\nevidence = [\"{}\", \"{}\"]\ndate = \"2026-11-02\"\n\n\
         [entry.key]\nfamily = \"matmul\"\ndtype = \"Q4_1\"\nclass = \"q8\"\npath = \"decode\"\nn = 576\nk = 1536\n\
         m = 1\n\n[entry.config]\nchunk = 64\nrows = 4\n",
        evidence[0], evidence[1]
    );
    fs::write(data.join("dispatch/cpu-avx512vnni-2c.toml"), table).unwrap();
}
