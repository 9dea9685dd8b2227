//! Analysis of streams of requests: each object is a page.

use super::counts::Faults;
use super::distances::StackDistances;
use super::error::ReferencesError;
use super::profile::Profile;
use super::recency::MOST_PAGES;
use super::shards::Shards;
use crate::streams::{Objects, StreamError, StreamRequest};

/// An analysed stream.
#[derive(Debug)]
pub struct StreamAnalysis {
    /// Memory sizes of the curve, in pages.
    pub sizes: Vec<u64>,
    /// Faults of each of `sizes`.
    pub faults: Vec<Faults>,
    /// Working sets and first touches.
    pub profile: Profile,
    /// Number of requests.
    pub references: u64,
    /// Largest share of the pages that was sampled to the end; 1 if all pages were.
    pub sampled_share: f64,
}

/// Requests between two calls of the progress function.
const STEP_REQUESTS: u64 = 1 << 20;

/// Analyses a stream exactly. `sizes` makes the memory sizes of the curve from the footprint, in pages. Memory use is
/// about 70 bytes per distinct page.
///
/// # Errors
/// The stream's error, or more distinct pages than can be numbered.
pub fn analyse(
    stream: impl Iterator<Item = Result<StreamRequest, StreamError>>,
    sizes: impl FnOnce(u64) -> Vec<u64>,
    mut progress: impl FnMut(u64),
) -> Result<StreamAnalysis, ReferencesError> {
    let mut stack = StackDistances::default();
    let (profile, references) = pass(stream, &mut progress, |page, request| {
        stack.reference(page, request.request.is_write);
    })?;
    let sizes = sizes(profile.footprint_pages());
    Ok(StreamAnalysis {
        faults: stack.finish().at(&sizes),
        sizes,
        profile,
        references,
        sampled_share: 1.0,
    })
}

/// Estimates faults and write-backs from a sample of the pages; working sets and first touches are exact. `seed`
/// selects the sample.
///
/// # Errors
/// As for [`analyse`].
pub fn estimate(
    stream: impl Iterator<Item = Result<StreamRequest, StreamError>>,
    seed: u64,
    sizes: impl FnOnce(u64) -> Vec<u64>,
    mut progress: impl FnMut(u64),
) -> Result<StreamAnalysis, ReferencesError> {
    let mut shards = Shards::new(seed);
    let (profile, references) = pass(stream, &mut progress, |_, request| {
        let request = request.request;
        shards.reference(request.object, request.is_write);
    })?;
    let sizes = sizes(profile.footprint_pages());
    let sampled_share = shards.sampled_share();
    Ok(StreamAnalysis {
        faults: shards.finish(&sizes),
        sizes,
        profile,
        references,
        sampled_share,
    })
}

/// Passes once over a stream: numbers its pages, and gives each request to `take`.
fn pass(
    stream: impl Iterator<Item = Result<StreamRequest, StreamError>>,
    progress: &mut dyn FnMut(u64),
    mut take: impl FnMut(u32, &StreamRequest),
) -> Result<(Profile, u64), ReferencesError> {
    let (mut objects, mut profile) = (Objects::default(), Profile::default());
    let (mut begin_ns, mut references) = (None, 0_u64);
    for recorded in stream {
        let recorded = recorded?;
        let number = objects.number(recorded.request.object);
        let page = number.filter(|number| *number < MOST_PAGES);
        let page = page.ok_or(ReferencesError::TooManyPages { most: MOST_PAGES })?;
        let begin_ns = *begin_ns.get_or_insert(recorded.at_ns);
        profile.reference(page, recorded.at_ns.saturating_sub(begin_ns));
        profile.first_touches.add(page, 1);
        take(page, &recorded);
        references += 1;
        if references.is_multiple_of(STEP_REQUESTS) {
            progress(references);
        }
    }
    Ok((profile, references))
}
