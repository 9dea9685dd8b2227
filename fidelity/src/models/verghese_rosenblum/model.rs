//! The paper's six models of remote memory, with the times of the technologies that come with Gleaner.

use crate::error::Result;
use gleaner_simulator::models::Technology;
use gleaner_simulator::models::verghese_rosenblum::{PageFetch, page_fetch};

/// A model of remote memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Model {
    Now,
    Subpage,
    MyrNow,
    AtmNow,
    CcNuma,
    CcNow,
}

impl Model {
    pub(super) const ALL: [Self; 6] = [
        Self::Now,
        Self::Subpage,
        Self::MyrNow,
        Self::AtmNow,
        Self::CcNuma,
        Self::CcNow,
    ];

    /// Name in the paper.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Now => "NOW",
            Self::Subpage => "SUBPAGE",
            Self::MyrNow => "MYRNOW",
            Self::AtmNow => "ATMNOW",
            Self::CcNuma => "CC-NUMA",
            Self::CcNow => "CC-NOW",
        }
    }

    /// Model with this name in the paper.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.name() == name)
    }

    /// The model's times.
    pub(super) fn technology(self) -> Result<Technology> {
        let name = self.name().to_lowercase();
        let text = Technology::shipped_text(&name).unwrap_or_default();
        Ok(Technology::parse(&name, text)?)
    }

    /// Times of a page; `None` for a model of cache lines.
    pub(super) fn page_fetch(self) -> Result<Option<PageFetch>> {
        Ok(page_fetch(&self.technology()?))
    }

    /// Time of a miss to remote memory, in seconds, if the model has one.
    pub(super) fn remote_miss_s(self) -> Result<f64> {
        Ok(self.technology()?.latency_us.value * 1e-6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_has_a_technology_of_pages_or_lines() {
        for model in Model::ALL {
            assert_eq!(Model::named(model.name()), Some(model));
            assert_eq!(model.technology().unwrap().label, model.name());
            let is_line = [Model::CcNuma, Model::CcNow].contains(&model);
            assert_eq!(model.page_fetch().unwrap().is_none(), is_line);
        }
    }
}
