//! Tuning spaces: named integer parameters, the values each may take, and the constraints between them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// One point of a tuning space: parameter name to value. `Display` and equality are canonical (sorted by name).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Config(pub BTreeMap<String, i64>);

impl Config {
    /// A configuration from pairs.
    pub fn new<const N: usize>(pairs: [(&str, i64); N]) -> Self {
        Config(pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
    }

    /// Value of a parameter.
    pub fn get(&self, name: &str) -> Option<i64> {
        self.0.get(name).copied()
    }
}

impl fmt::Display for Config {
    /// `chunk=64,prefetch=4,rows=2`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.0.iter().enumerate() {
            write!(f, "{}{name}={value}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// One tuning parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Param {
    /// Name, as in `Config`.
    pub name: &'static str,
    /// Values it may take, in ascending order.
    pub values: Vec<i64>,
    /// What it changes, for `--dry-run` and docs.
    pub doc: &'static str,
}

/// A tuning space: the cross product of its parameters, less what the constraint refuses.
#[derive(Clone, Debug)]
pub struct Space {
    /// Parameters, in declaration order.
    pub params: Vec<Param>,
    /// Why a point is not feasible; `Ok` when it is.
    pub constraint: fn(&Config) -> Result<(), String>,
}

impl Space {
    /// Every point of the cross product in lexicographic order of `params`, feasible or not.
    pub fn points(&self) -> impl Iterator<Item = Config> + '_ {
        let total: usize = self.params.iter().map(|p| p.values.len()).product();
        (0..total).map(|mut index| {
            let mut config = Config::default();
            for param in self.params.iter().rev() {
                config.0.insert(param.name.to_owned(), param.values[index % param.values.len()]);
                index /= param.values.len();
            }
            config
        })
    }

    /// Every feasible point.
    pub fn feasible(&self) -> impl Iterator<Item = Config> + '_ {
        self.points().filter(|config| (self.constraint)(config).is_ok())
    }

    /// Whether `config` names exactly this space's parameters, each with a value of the space, and is feasible.
    ///
    /// # Errors
    /// The parameter or constraint that refuses it.
    pub fn validate(&self, config: &Config) -> Result<(), String> {
        for param in &self.params {
            let value =
                config.get(param.name).ok_or_else(|| format!("parameter `{}` is missing", param.name))?;
            if !param.values.contains(&value) {
                return Err(format!(
                    "parameter `{}` cannot be {value}; values: {:?}",
                    param.name, param.values
                ));
            }
        }
        if let Some(name) = config.0.keys().find(|name| !self.params.iter().any(|p| p.name == name.as_str()))
        {
            return Err(format!("parameter `{name}` is not part of this space"));
        }
        (self.constraint)(config)
    }
}
