//! Error texts of providers, in a table.
