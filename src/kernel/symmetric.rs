//! symmetric
