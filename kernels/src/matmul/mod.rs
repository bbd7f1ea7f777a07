//! Matrix product `out[m][n] = Σ_k x[m][k] · w[n][k]` from weights in their storage format.
