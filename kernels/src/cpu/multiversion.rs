//! One plain function, compiled for each instruction set and chosen at run time.

/// Compiles a function for AVX-512, AVX2 and the target's baseline, and calls the widest that the machine has.
///
/// For loops that the compiler vectorises by itself. Rust never contracts or reorders float operations, so every
/// version gives the same bits.
macro_rules! multiversion {
    ($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        $(#[$meta])*
        #[allow(unsafe_code, reason = "a function compiled for an instruction set is called after detecting it")]
        fn $name($($arg: $ty),*) {
            #[inline(always)]
            fn plain($($arg: $ty),*) $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")]
            fn avx512($($arg: $ty),*) {
                plain($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c")]
            fn avx2($($arg: $ty),*) {
                plain($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            match $crate::cpu::Isa::detect() {
                // SAFETY: `Isa::detect` saw every feature that `avx512` enables.
                $crate::cpu::Isa::Avx512 => return unsafe { avx512($($arg),*) },
                // SAFETY: `Isa::detect` saw every feature that `avx2` enables.
                $crate::cpu::Isa::Avx2 => return unsafe { avx2($($arg),*) },
                $crate::cpu::Isa::Portable => {}
            }
            plain($($arg),*)
        }
    };
}

pub(crate) use multiversion;
