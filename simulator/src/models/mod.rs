//! Models of remote memory: what a program's curve predicts for a technology.
//!
//! [`Technology`] is the description of a remote memory, from a TOML file; [`predict`] is the model for machines of
//! today; [`verghese_rosenblum`] has the models of B. Verghese and M. Rosenblum, *Remote Memory Access in Workstation
//! Clusters* (Stanford CSL-TR-97-729, 1997).

mod paging;
mod prediction;
mod program;
mod technology;
pub mod verghese_rosenblum;

pub use paging::PagingTimes;
pub use prediction::{Unpredictable, fault_band, predict};
pub use program::ProgramCurve;
pub use technology::{
    Estimate, Granularity, Queueing, Rate, SHIPPED_TECHNOLOGIES, Technology, TechnologyError,
};
