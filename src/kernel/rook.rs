//! rook
