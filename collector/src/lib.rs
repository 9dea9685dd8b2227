//! The collector: takes the batches of a cluster's agents, keeps each durably before it is
//! acknowledged, seals them as files of a dataset, and serves it.
