//! One safetensors file, read by our reader and by the format's own.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memra_formats::{Safetensors, SafetensorsError as Error, SharedBytes};
use memra_fuzz::{bounded, use_tensor};
use safetensors::SafeTensorError as Theirs;

fuzz_target!(|input: &[u8]| {
    let bytes = SharedBytes::from(input);
    let ours = bounded(input.len(), || Safetensors::parse(bytes));
    let theirs = safetensors::SafeTensors::deserialize(input);
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => {
            assert_eq!(ours.tensors().len(), theirs.len());
            for tensor in ours.tensors() {
                let view = theirs.tensor(tensor.name()).expect("both have it");
                assert_eq!((tensor.data(), &*tensor.shape()), (view.data(), view.shape()));
                assert_eq!(tensor.storage().to_string(), view.dtype().to_string());
                use_tensor(tensor);
            }
        }
        // We do not look into `__metadata__`, which must be texts, nor into fields that we do not know.
        (Ok(ours), Err(Theirs::InvalidHeaderDeserialization(error))) => {
            let text = String::from_utf8_lossy(input);
            let unread = text.contains("__metadata__")
                || text.contains("\\u")
                || error.to_string().contains("recursion");
            assert!(unread, "refused by them alone: {error}");
            ours.tensors().for_each(use_tensor);
        }
        // They take the last of two tensors of one name, any name, any number of dimensions, and sizes that overflow
        // behind a zero.
        (
            Err(
                Error::DuplicateTensor { .. } | Error::Name { .. } | Error::Entry { .. } | Error::Size { .. },
            ),
            Ok(_),
        ) => {}
        (Err(ours), Ok(_)) => panic!("refused by us alone: {ours}"),
        (Err(ours), Err(_)) => drop(ours.to_string()),
        (Ok(_), Err(theirs)) => panic!("refused by them alone: {theirs}"),
    }
});
