//! Public keys and certificates: what is taken for one, and what is not.

mod authority;
mod bed;
mod certificates;
mod ebay;
mod keys;
mod paypal;
mod sns;
