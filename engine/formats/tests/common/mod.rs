//! What tests of several files share.
#![allow(dead_code, reason = "each test file uses a part of it")]

/// A safetensors file of this header and these many bytes of data.
pub(crate) fn safetensors(header: &str, data: usize) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend((0..data).map(|i| i as u8));
    file
}

/// An entry of a header: `"name":{…}`.
pub(crate) fn entry(name: &str, dtype: &str, shape: &str, start: u64, end: u64) -> String {
    format!(r#""{name}":{{"dtype":"{dtype}","shape":[{shape}],"data_offsets":[{start},{end}]}}"#)
}

/// A header of these entries.
pub(crate) fn header(entries: &[String]) -> String {
    format!("{{{}}}", entries.join(","))
}

/// Numbers that differ from run to run only if the code does (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    /// A copy with one to four places damaged.
    pub(crate) fn damage(&mut self, whole: &[u8]) -> Vec<u8> {
        let mut bytes = whole.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len());
            match self.below(4) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = self.below(256) as u8,
                2 => bytes[at] = 0xFF,
                // A whole length or offset becomes huge.
                _ => bytes[at..].iter_mut().take(8).for_each(|byte| *byte = 0xFF),
            }
        }
        bytes
    }
}
