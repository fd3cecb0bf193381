//! Stand-in
