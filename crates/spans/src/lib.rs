//! JSON lines as bytes: where each value is, and how a string is cut without touching anything else.
//!
//! Bytes become marks ([`block`]), marks become tokens and values ([`json`]), and a value is a [`Span`] of the source.
//! [`literal`] decodes strings, [`cut`] finds where they may be cut, and a [`marker`] replaces what is cut. Nothing here knows
//! what an agent writes, and nothing here reads a file, a clock or the environment.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod block;
pub mod cut;
pub mod fingerprint;
pub mod json;
pub mod literal;
pub mod marker;
pub mod source;

pub use source::{Fault, Source, Span};
