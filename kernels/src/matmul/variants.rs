//! The compiled microkernels, and the choice among them.

#![allow(
    unsafe_code,
    reason = "functions compiled for an instruction set; `choose` hands out only what the machine has"
)]

use super::code::Code;
use super::format::{self, Blocks as BlockFormat, Format, Visitor};
use super::head::Head;
use super::kernel::{self, Decode, Panel};
use super::packed::Layout;
use crate::DType;
use crate::cpu::Isa;
use std::marker::PhantomData;

/// A microkernel for quantised weights and activations.
type Blocks = unsafe fn(&Panel);
/// A microkernel for decoded weights.
type Floats = unsafe fn(&Panel, Layout, Decode);

/// A microkernel ready to be called.
#[derive(Clone, Copy)]
pub(super) enum Kernel {
    Blocks(Blocks),
    Floats(Floats, Layout, Decode),
}

impl Kernel {
    /// # Safety
    /// See [`Panel`]; the machine has the instruction set that [`choose`] was asked for.
    pub(super) unsafe fn call(self, panel: &Panel) {
        match self {
            // SAFETY: as this function's.
            Kernel::Blocks(f) => unsafe { f(panel) },
            // SAFETY: as this function's; layout and decoder are those of the same type.
            Kernel::Floats(f, layout, decode) => unsafe { f(panel, layout, decode) },
        }
    }
}

/// A microkernel that is asked for, in one instruction set.
struct Choice<S> {
    integers: bool,
    dtype: DType,
    shape: (usize, usize),
    simd: PhantomData<S>,
}

/// The microkernels of one instruction set, each compiled for it.
macro_rules! compiled {
    ($name:ident, $simd:ty, [$($feature:literal)?], [$(($r:literal, $t:literal)),*], [$($ft:literal),*]) => {
        mod $name {
            use super::*;

            $(#[target_feature(enable = $feature)])?
            unsafe fn blocks<C: Code, H: Head, const R: usize, const T: usize>(p: &Panel) {
                // SAFETY: this function's contract, and the features are enabled here.
                unsafe { kernel::blocks::<$simd, C, H, R, T>(p) }
            }

            $(#[target_feature(enable = $feature)])?
            unsafe fn floats<const T: usize>(p: &Panel, layout: Layout, decode: Decode) {
                // SAFETY: as above.
                unsafe { kernel::floats::<$simd, T>(p, layout, decode) }
            }

            $(#[target_feature(enable = $feature)])?
            unsafe fn decode<F: Format>(head: *const u8, part: usize, body: *const u8, out: *mut f32) {
                // SAFETY: as above.
                unsafe { F::decode::<$simd>(head, part, body, out) }
            }

            /// The (tiles, rows) compiled, for quantised weights times quantised activations and for the rest.
            pub(super) const SHAPES: [&[(usize, usize)]; 2] = [&[$(($r, $t)),*], &[$((1, $ft)),*]];

            fn blocks_of<C: Code, H: Head>(shape: (usize, usize)) -> Option<Kernel> {
                match shape {
                    $(($r, $t) => Some(Kernel::Blocks(blocks::<C, H, $r, $t>)),)*
                    _ => None,
                }
            }

            fn floats_of<F: Format>(dtype: DType, shape: (usize, usize)) -> Option<Kernel> {
                let layout = Layout::of(dtype);
                match shape {
                    $((1, $ft) => Some(Kernel::Floats(floats::<$ft>, layout, decode::<F>)),)*
                    _ => None,
                }
            }

            impl Visitor for Choice<$simd> {
                type Output = Option<Kernel>;
                fn visit<C: Code, H: Head>(self) -> Option<Kernel> {
                    if self.integers {
                        blocks_of::<C, H>(self.shape)
                    } else {
                        floats_of::<BlockFormat<C, H>>(self.dtype, self.shape)
                    }
                }
            }

            pub(super) fn choose(dtype: DType, integers: bool, shape: (usize, usize)) -> Option<Kernel> {
                match dtype {
                    DType::F32 => floats_of::<format::F32>(dtype, shape),
                    DType::F16 => floats_of::<format::F16>(dtype, shape),
                    DType::BF16 => floats_of::<format::BF16>(dtype, shape),
                    DType::F8_E4M3 => floats_of::<format::F8E4M3>(dtype, shape),
                    _ => format::visit(dtype, Choice { integers, dtype, shape, simd: PhantomData::<$simd> })?,
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
compiled!(
    avx512,
    crate::cpu::simd::Avx512,
    ["avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c"],
    [(1, 1), (1, 2), (1, 4), (1, 8), (2, 1), (2, 2), (2, 4), (2, 8), (4, 1), (4, 2), (4, 4)],
    [1, 8]
);
#[cfg(target_arch = "x86_64")]
compiled!(avx2, crate::cpu::simd::Avx2, ["avx2,fma,f16c"], [(1, 1), (1, 2)], [1, 4]);
compiled!(portable, crate::cpu::simd::Portable, [], [(1, 1), (1, 4)], [1, 4]);

/// The (tiles, rows) of the compiled microkernels, see [`Kernels::new`].
pub(super) fn shapes(isa: Isa, integers: bool) -> &'static [(usize, usize)] {
    let [blocks, floats] = match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => avx512::SHAPES,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => avx2::SHAPES,
        _ => portable::SHAPES,
    };
    if integers { blocks } else { floats }
}

/// The microkernel of this exact shape, if compiled. `integers` asks for quantised weights times quantised activations.
///
/// `isa` must be one that the machine has.
fn choose(isa: Isa, dtype: DType, integers: bool, shape: (usize, usize)) -> Option<Kernel> {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => avx512::choose(dtype, integers, shape),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => avx2::choose(dtype, integers, shape),
        _ => portable::choose(dtype, integers, shape),
    }
}

/// The microkernels one product uses: for up to `tiles` tiles, and for the tiles left over.
pub(super) struct Kernels {
    /// Tiles a full call holds.
    pub(super) tiles: usize,
    wide: [Option<Kernel>; LOG_TOKENS],
    single: [Option<Kernel>; LOG_TOKENS],
}

/// Token counts are powers of two up to 8.
const LOG_TOKENS: usize = 4;

impl Kernels {
    /// The variants nearest to `tiles` × `tokens` that are compiled; never wider.
    pub(super) fn new(isa: Isa, dtype: DType, integers: bool, tiles: usize, tokens: usize) -> Kernels {
        let isa = isa.min(Isa::detect());
        let row = |tiles: usize| {
            std::array::from_fn(|log| {
                let shape = (tiles, 1usize << log);
                if shape.1 > tokens.max(1) { None } else { choose(isa, dtype, integers, shape) }
            })
        };
        let tiles =
            [4, 2].into_iter().find(|t| *t <= tiles && choose(isa, dtype, integers, (*t, 1)).is_some());
        let tiles = tiles.unwrap_or(1);
        Kernels { tiles, wide: row(tiles), single: row(1) }
    }

    /// The widest microkernel for `tiles` tiles (1 or [`Kernels::tiles`]) and at most `tokens` rows, with its rows.
    pub(super) fn pick(&self, tiles: usize, tokens: usize) -> Option<(Kernel, usize)> {
        let row = if tiles == self.tiles { &self.wide } else { &self.single };
        row.iter().enumerate().rev().find_map(|(log, kernel)| {
            let rows = 1usize << log;
            kernel.filter(|_| rows <= tokens).map(|kernel| (kernel, rows))
        })
    }
}
