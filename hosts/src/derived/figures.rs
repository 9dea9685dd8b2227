//! Categories of one sample, from a stored row or from its columns.

use gleaner_policy::accounting::{Categories, headroom_bytes};
use gleaner_schemas::findings::Category;
use gleaner_schemas::rows::SampleRow;
use serde::{Deserialize, Serialize};

/// Memory figures of one sample, in bytes; each is absent if the trace does not have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Physical memory, the sum of the categories.
    pub physical_bytes: u64,
    /// Category: static kernel.
    pub static_kernel_bytes: Option<u64>,
    /// Category: the hypervisor's balloon.
    pub balloon_bytes: Option<u64>,
    /// Category: dynamic kernel.
    pub dynamic_kernel_bytes: Option<u64>,
    /// Category: the kernel's reserve.
    pub reserve_bytes: Option<u64>,
    /// Category: active processes.
    pub process_bytes: Option<u64>,
    /// Category: files in use.
    pub file_cache_bytes: Option<u64>,
    /// Category: memory lent to guests.
    pub guest_bytes: Option<u64>,
    /// Category: available, the remainder.
    pub available_bytes: Option<u64>,
    /// Physical memory less all categories: negative if the categories add up to more, otherwise 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category_correction_bytes: Option<i64>,
}

impl Figures {
    /// Takes the columns of one row; `category_bytes` returns the column of a category.
    #[must_use]
    pub fn of(
        physical_bytes: u64,
        category_bytes: impl Fn(Category) -> Option<u64>,
        category_correction_bytes: Option<i64>,
    ) -> Self {
        Self {
            physical_bytes,
            static_kernel_bytes: category_bytes(Category::StaticKernel),
            balloon_bytes: category_bytes(Category::Balloon),
            dynamic_kernel_bytes: category_bytes(Category::DynamicKernel),
            reserve_bytes: category_bytes(Category::Reserve),
            process_bytes: category_bytes(Category::Process),
            file_cache_bytes: category_bytes(Category::FileCache),
            guest_bytes: category_bytes(Category::Guest),
            available_bytes: category_bytes(Category::Available),
            category_correction_bytes,
        }
    }

    /// Returns the size of one category.
    #[must_use]
    pub const fn category_bytes(&self, category: Category) -> Option<u64> {
        match category {
            Category::StaticKernel => self.static_kernel_bytes,
            Category::Balloon => self.balloon_bytes,
            Category::DynamicKernel => self.dynamic_kernel_bytes,
            Category::Reserve => self.reserve_bytes,
            Category::Process => self.process_bytes,
            Category::FileCache => self.file_cache_bytes,
            Category::Guest => self.guest_bytes,
            Category::Available => self.available_bytes,
        }
    }

    /// Returns the sum of the kernel's known categories: static, balloon, dynamic and reserve.
    #[must_use]
    pub fn kernel_bytes(&self) -> u64 {
        let parts = [
            self.static_kernel_bytes,
            self.balloon_bytes,
            self.dynamic_kernel_bytes,
            self.reserve_bytes,
        ];
        parts.into_iter().flatten().fold(0, u64::saturating_add)
    }

    /// Returns the categories if the trace has all of them. Only the balloon, static memory and the reserve
    /// may be absent.
    #[must_use]
    pub fn complete(&self) -> Option<Categories> {
        let required = [
            self.dynamic_kernel_bytes,
            self.process_bytes,
            self.file_cache_bytes,
            self.guest_bytes,
            self.available_bytes,
        ];
        let is_complete =
            required.iter().all(Option::is_some) && self.category_correction_bytes.is_some();
        is_complete.then(|| self.known())
    }

    /// Returns the categories with 0 for each absent one. That suffices for a quota, which needs only
    /// physical, available and guest memory.
    #[must_use]
    pub fn known(&self) -> Categories {
        Categories {
            physical_bytes: self.physical_bytes,
            static_kernel_bytes: self.static_kernel_bytes,
            balloon_bytes: self.balloon_bytes.unwrap_or(0),
            dynamic_kernel_bytes: self.dynamic_kernel_bytes.unwrap_or(0),
            reserve_bytes: self.reserve_bytes,
            process_bytes: self.process_bytes.unwrap_or(0),
            file_cache_bytes: self.file_cache_bytes.unwrap_or(0),
            guest_bytes: self.guest_bytes.unwrap_or(0),
            available_bytes: self.available_bytes.unwrap_or(0),
            category_correction_bytes: self.category_correction_bytes.unwrap_or(0),
        }
    }
}

impl From<&SampleRow> for Figures {
    fn from(row: &SampleRow) -> Self {
        Self {
            physical_bytes: unsigned(row.physical_bytes),
            static_kernel_bytes: row.static_kernel_bytes.map(unsigned),
            balloon_bytes: Some(unsigned(row.balloon_bytes)),
            dynamic_kernel_bytes: Some(unsigned(row.dynamic_kernel_bytes)),
            reserve_bytes: row.reserve_bytes.map(unsigned),
            process_bytes: Some(unsigned(row.process_bytes)),
            file_cache_bytes: Some(unsigned(row.file_cache_bytes)),
            guest_bytes: Some(unsigned(row.guest_bytes)),
            available_bytes: Some(unsigned(row.available_bytes)),
            category_correction_bytes: Some(row.category_correction_bytes),
        }
    }
}

/// MemAvailable of one sample, in bytes. If a trace has only harvestable memory, the result is the sum of
/// harvestable memory and headroom; it is too large if less than the headroom was available.
#[must_use]
pub fn mem_available_bytes(
    stated_bytes: Option<i64>,
    harvestable_bytes: Option<i64>,
    physical_bytes: i64,
    headroom_share: f64,
) -> Option<u64> {
    stated_bytes.map(unsigned).or_else(|| {
        let headroom = headroom_bytes(unsigned(physical_bytes), headroom_share);
        Some(unsigned(harvestable_bytes?).saturating_add(headroom))
    })
}

/// Converts a stored size to the policy's type. A negative size, which no kernel reports, counts as 0.
#[must_use]
pub fn unsigned(bytes: i64) -> u64 {
    u64::try_from(bytes).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_s_categories_are_its_columns() {
        let row = SampleRow {
            physical_bytes: 100,
            static_kernel_bytes: Some(1),
            balloon_bytes: 2,
            dynamic_kernel_bytes: 3,
            reserve_bytes: None,
            process_bytes: 4,
            file_cache_bytes: 5,
            guest_bytes: -6,
            available_bytes: 86,
            category_correction_bytes: -1,
            ..SampleRow::default()
        };
        let expected = Categories {
            physical_bytes: 100,
            static_kernel_bytes: Some(1),
            balloon_bytes: 2,
            dynamic_kernel_bytes: 3,
            reserve_bytes: None,
            process_bytes: 4,
            file_cache_bytes: 5,
            guest_bytes: 0,
            available_bytes: 86,
            category_correction_bytes: -1,
        };
        let figures = Figures::from(&row);
        assert_eq!(figures.known(), expected);
        assert_eq!(figures.complete(), Some(expected));
        assert_eq!(figures.kernel_bytes(), 6);
        let of_columns = |category| figures.category_bytes(category);
        let again = Figures::of(
            figures.physical_bytes,
            of_columns,
            figures.category_correction_bytes,
        );
        assert_eq!(again, figures);
    }

    #[test]
    fn a_trace_of_available_memory_alone_is_incomplete_and_has_a_quota() {
        let whole = Figures::from(&SampleRow::default());
        let without: [fn(&mut Figures); 6] = [
            |f| f.dynamic_kernel_bytes = None,
            |f| f.process_bytes = None,
            |f| f.file_cache_bytes = None,
            |f| f.guest_bytes = None,
            |f| f.available_bytes = None,
            |f| f.category_correction_bytes = None,
        ];
        for remove in without {
            let mut figures = whole;
            remove(&mut figures);
            assert_eq!(figures.complete(), None, "{figures:?}");
            assert_eq!(figures.known(), whole.known());
        }
        let optional = Figures {
            static_kernel_bytes: None,
            balloon_bytes: None,
            reserve_bytes: None,
            ..whole
        };
        assert_eq!(optional.complete(), Some(optional.known()));
    }

    #[test]
    fn mem_available_is_stated_or_made_from_the_harvestable() {
        assert_eq!(mem_available_bytes(Some(7), Some(1), 100, 0.15), Some(7));
        assert_eq!(mem_available_bytes(Some(-7), Some(1), 100, 0.15), Some(0));
        assert_eq!(mem_available_bytes(None, Some(1), 100, 0.15), Some(16));
        assert_eq!(mem_available_bytes(None, None, 100, 0.15), None);
    }
}
