//! Which tensor of a file gets which storage type, for each mix of types as llama.cpp's quantiser makes it.

use crate::Error;
use memra_kernels::DType;
use std::fmt;
use std::str::FromStr;

/// A mix of storage types, under the name its files carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "the field writes these names with underscores: Q4_K_M, not Q4KM")]
pub enum Quant {
    /// Q4_K, with Q6_K for the head and for half of the values and down projections.
    #[default]
    Q4_K_M,
    /// Q8_0 throughout.
    Q8_0,
    /// Q4_0, with Q6_K for the head.
    Q4_0,
    /// bfloat16 throughout.
    BF16,
    /// IEEE binary16 throughout.
    F16,
}

/// What a tensor does in its model, as far as recipes tell tensors apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The token embedding; `is_head` where it is the output head as well.
    Embedding {
        /// Whether the embedding is tied to the head.
        is_head: bool,
    },
    /// The output head.
    Head,
    /// The value projection of this layer.
    Value {
        /// From 0.
        layer: usize,
    },
    /// The down projection of this layer, of its experts too.
    Down {
        /// From 0.
        layer: usize,
    },
    /// Any other matrix.
    Matrix,
    /// The router of a mixture of experts.
    Router,
    /// A vector: norm weights and biases.
    Vector,
}

impl Quant {
    /// Every mix.
    pub const ALL: [Quant; 5] = [Quant::Q4_K_M, Quant::Q8_0, Quant::Q4_0, Quant::BF16, Quant::F16];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Quant::Q4_K_M => "Q4_K_M",
            Quant::Q8_0 => "Q8_0",
            Quant::Q4_0 => "Q4_0",
            Quant::BF16 => "BF16",
            Quant::F16 => "F16",
        }
    }

    /// The number that `general.file_type` gives it.
    pub fn file_type(self) -> u32 {
        match self {
            Quant::F16 => 1,
            Quant::Q4_0 => 2,
            Quant::Q8_0 => 7,
            Quant::Q4_K_M => 15,
            Quant::BF16 => 32,
        }
    }

    /// The storage type of a tensor with rows of `k` values, in a model of `n_layers`.
    ///
    /// Vectors and routers stay F32. A type whose blocks do not divide the rows gives way to one of the next larger
    /// size that does: Q4_K to Q5_0, Q6_K to Q8_0, and F16 where not even blocks of 32 do.
    pub fn dtype(self, role: Role, n_layers: usize, k: usize) -> DType {
        let is_head = matches!(role, Role::Head | Role::Embedding { is_head: true });
        let wanted = match (self, role) {
            (_, Role::Vector | Role::Router) => DType::F32,
            (Quant::Q8_0, _) => DType::Q8_0,
            (Quant::BF16, _) => DType::BF16,
            (Quant::F16, _) => DType::F16,
            (Quant::Q4_K_M | Quant::Q4_0, _) if is_head => DType::Q6_K,
            (Quant::Q4_0, _) => DType::Q4_0,
            (Quant::Q4_K_M, Role::Value { layer } | Role::Down { layer }) if wider(layer, n_layers) => {
                DType::Q6_K
            }
            (Quant::Q4_K_M, _) => DType::Q4_K,
        };
        let fits = |dtype: DType| k.is_multiple_of(dtype.block_len());
        let smaller_blocks = if wanted == DType::Q6_K { DType::Q8_0 } else { DType::Q5_0 };
        [wanted, smaller_blocks].into_iter().find(|dtype| fits(*dtype)).unwrap_or(DType::F16)
    }
}

/// Layers whose values and down projections get the wider type: the first and last eighths, and between them every
/// third.
fn wider(layer: usize, n_layers: usize) -> bool {
    let first = n_layers / 8;
    layer < first || layer >= 7 * n_layers / 8 || (layer - first) % 3 == 2
}

impl fmt::Display for Quant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Quant {
    type Err = Error;

    fn from_str(name: &str) -> Result<Quant, Error> {
        Quant::ALL.into_iter().find(|quant| quant.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
            let names = Quant::ALL.map(Quant::name).join(", ");
            Error::Argument(format!("no mix of types is called `{name}`; there are {names}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q4_k_m_widens_the_head_and_half_of_the_layers() {
        let dtype = |role| Quant::Q4_K_M.dtype(role, 36, 4096);
        assert_eq!(dtype(Role::Head), DType::Q6_K);
        assert_eq!(dtype(Role::Embedding { is_head: true }), DType::Q6_K);
        assert_eq!(dtype(Role::Embedding { is_head: false }), DType::Q4_K);
        assert_eq!(dtype(Role::Matrix), DType::Q4_K);
        assert_eq!((dtype(Role::Vector), dtype(Role::Router)), (DType::F32, DType::F32));
        // 36 layers: four at the start, from 31 on, and 6, 9, 12, … between.
        let wide: Vec<usize> = (0..36).filter(|&layer| dtype(Role::Value { layer }) == DType::Q6_K).collect();
        assert_eq!(wide, [0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 31, 32, 33, 34, 35]);
        assert!((0..36).all(|layer| dtype(Role::Down { layer }) == dtype(Role::Value { layer })));
        let few: Vec<bool> = (0..4).map(|layer| wider(layer, 4)).collect();
        assert_eq!(few, [false, false, true, true]);
    }

    #[test]
    fn rows_that_blocks_do_not_divide_fall_back() {
        let dtype = |quant: Quant, role, k| quant.dtype(role, 18, k);
        assert_eq!(dtype(Quant::Q4_K_M, Role::Matrix, 640), DType::Q5_0);
        assert_eq!(dtype(Quant::Q4_K_M, Role::Value { layer: 0 }, 640), DType::Q8_0);
        assert_eq!(dtype(Quant::Q4_K_M, Role::Embedding { is_head: true }, 640), DType::Q8_0);
        assert_eq!(dtype(Quant::Q4_0, Role::Embedding { is_head: true }, 640), DType::Q8_0);
        assert_eq!(dtype(Quant::Q4_0, Role::Matrix, 640), DType::Q4_0);
        assert_eq!(dtype(Quant::Q8_0, Role::Matrix, 48), DType::F16);
        assert_eq!(dtype(Quant::BF16, Role::Matrix, 7), DType::BF16);
    }

    #[test]
    fn names_round_trip() {
        for quant in Quant::ALL {
            assert_eq!(quant.to_string().to_lowercase().parse::<Quant>().unwrap(), quant);
        }
        assert!("Q4_K".parse::<Quant>().unwrap_err().to_string().contains("Q4_K_M"));
    }
}
