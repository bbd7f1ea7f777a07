//! Quantised block formats: byte layout, scalar decode and encode, one file a format.
