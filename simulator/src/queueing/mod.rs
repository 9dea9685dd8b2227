//! Networks of queues: their mean values, exact and approximate, and a simulation of the same networks.
//!
//! A [`Network`] has centres ([`Discipline`]), closed chains of customers that circulate, and open chains of customers
//! that pass through. [`exact_solution`] is mean value analysis:
//!
//! - closed chains: M. Reiser and S. S. Lavenberg, *Mean-Value Analysis of Closed Multichain Queuing Networks*, Journal of
//!   the ACM 27(2), 1980
//! - open chains beside them: E. D. Lazowska, J. Zahorjan, G. S. Graham and K. C. Sevcik, *Quantitative System
//!   Performance*, 1984, chapters 6 and 7
//! - conditions: F. Baskett, K. M. Chandy, R. R. Muntz and F. G. Palacios, *Open, Closed, and Mixed Networks of Queues with
//!   Different Classes of Customers*, Journal of the ACM 22(2), 1975
//!
//! [`approximate_solution`] takes larger populations (P. Schweitzer, *Approximate Analysis of Multiclass Closed Networks
//! of Queues*, 1979). [`simulate`] draws exponential service times. [`RemotePaging`] is the model of Felten and Zahorjan,
//! [`DiskPaging`] the one that they compare it with.

mod approximate;
mod demand;
mod error;
mod exact;
mod felten_zahorjan;
mod network;
mod simulation;
mod solution;
#[cfg(test)]
mod tests;

pub use error::QueueingError;
pub use felten_zahorjan::{DiskPaging, PageTimes, PagingMeans, RemotePaging};
pub use network::{Centre, ClosedChain, Discipline, Network, OpenChain, Stage};
pub use simulation::{Observation, simulate};
pub use solution::{CentreMeans, ChainMeans, Solution, approximate_solution, exact_solution};
