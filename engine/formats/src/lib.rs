//! Model files: GGUF and safetensors, safe on any input
