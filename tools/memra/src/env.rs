//! What the process was started in. Filled by `main` alone, which is the one place that reads environment variables.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The surroundings of one invocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Env {
    /// `HOME`.
    pub(crate) home: Option<PathBuf>,
    /// `XDG_DATA_HOME`.
    pub(crate) xdg_data: Option<PathBuf>,
    /// `XDG_CACHE_HOME`.
    pub(crate) xdg_cache: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`.
    pub(crate) xdg_config: Option<PathBuf>,
    /// `MEMRA_CONFIG`: the configuration file when no `--config` is given.
    pub(crate) memra_config: Option<PathBuf>,
    /// `HF_ENDPOINT`: address of the hub.
    pub(crate) hf_endpoint: Option<String>,
    /// `HF_TOKEN`: who asks the hub.
    pub(crate) hf_token: Option<String>,
    /// `SSL_CERT_FILE`: certificates to trust instead of the system's.
    pub(crate) ca_file: Option<PathBuf>,
    /// `NO_COLOR` is set and not empty.
    pub(crate) no_color: bool,
    /// Every variable, for children: each gets what its manifest lets it see.
    pub(crate) vars: BTreeMap<OsString, OsString>,
    /// Folders of `PATH`.
    pub(crate) path: Vec<PathBuf>,
    /// Root of the memra checkout around the current folder.
    pub(crate) checkout: Option<PathBuf>,
}

impl Env {
    /// Where the user's data go.
    pub(crate) fn data_folder(&self) -> Option<PathBuf> {
        self.folder(self.xdg_data.as_deref(), ".local/share")
    }

    /// Where what can be fetched again goes.
    pub(crate) fn cache_folder(&self) -> Option<PathBuf> {
        self.folder(self.xdg_cache.as_deref(), ".cache")
    }

    /// Where the user's configuration lies.
    pub(crate) fn config_folder(&self) -> Option<PathBuf> {
        self.folder(self.xdg_config.as_deref(), ".config")
    }

    fn folder(&self, xdg: Option<&Path>, in_home: &str) -> Option<PathBuf> {
        // The XDG specification: a relative path is invalid and ignored.
        let base = match xdg.filter(|path| path.is_absolute()) {
            Some(path) => path.to_owned(),
            None => self.home.as_ref()?.join(in_home),
        };
        Some(base.join("memra"))
    }
}

/// The memra checkout that holds `folder`, if any: the nearest folder upwards with the kernels and this crate.
pub(crate) fn checkout(folder: &Path) -> Option<PathBuf> {
    let is_root = |dir: &&Path| {
        dir.join("kernels/Cargo.toml").is_file() && dir.join("tools/memra/Cargo.toml").is_file()
    };
    folder.ancestors().find(is_root).map(Path::to_owned)
}
