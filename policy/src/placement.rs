//! Which hosts a lease is asked from.

/// How hosts are chosen for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Any host with room, each as likely (Dodo; Acharya & Setia, section 5).
    Random,
    /// The host with the fewest pages stored (Anemone).
    FewestPages,
    /// The host that serves the fewest requests (Anemone).
    FewestRequests,
    /// The host that this client has the least on: spread equally (Felten & Zahorjan).
    Spread,
    /// The host that this client found good before, as long as it has room (Felten & Zahorjan).
    Stick,
    /// As likely as the host's share of all free memory at the start of the epoch (GMS: weights w_i).
    EpochWeights,
    /// The host on which so much is most likely to stay for as long as asked (ours).
    #[default]
    LongestAvailable,
}

/// A host that could be asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidate {
    /// Its id.
    pub host_id: String,
    /// What is free there.
    pub free_bytes: u64,
    /// What is leased there.
    pub lent_bytes: u64,
    /// Page requests served a second.
    pub requests_per_s: f64,
    /// What this client has leased there.
    pub client_bytes: u64,
    /// For how long it has been idle.
    pub idle_for_ms: Option<i64>,
    /// The probability that what is asked stays for as long as asked, where the forecast knows.
    pub stays: Option<f64>,
    /// When it last failed.
    pub failed_ms: Option<i64>,
}
