//! Assigns numbers to the names of sources and folders.

use std::collections::HashMap;

/// Assigns numbers to names, in the order of their first use.
#[derive(Default)]
pub(crate) struct Numbers(HashMap<String, u32>, Vec<String>);

impl Numbers {
    pub(crate) fn of(&mut self, name: &str) -> u32 {
        if let Some(number) = self.0.get(name) {
            return *number;
        }
        let number = u32::try_from(self.1.len()).unwrap_or(u32::MAX);
        self.0.insert(name.to_owned(), number);
        self.1.push(name.to_owned());
        number
    }

    /// Continues with names that [`names`](Self::names) has returned.
    pub(crate) fn continued(names: &[String]) -> Self {
        let mut numbers = Self::default();
        for name in names {
            numbers.of(name);
        }
        numbers
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.1
    }

    pub(crate) fn name(&self, number: u32) -> &str {
        self.1.get(number as usize).map_or("", String::as_str)
    }
}
