//! Encoding of records with a fixed length. Numbers are big-endian, so that sorting the bytes sorts the numbers.

/// Writes the fields of a record. Fields after the end of the record are dropped, so the record has to have the sum of their
/// lengths.
pub(crate) struct RecordWriter<'w>(&'w mut [u8]);

impl<'w> RecordWriter<'w> {
    pub(crate) fn new(record: &'w mut [u8]) -> Self {
        Self(record)
    }

    pub(crate) fn put<const N: usize>(&mut self, field: [u8; N]) {
        if let Some((place, rest)) = std::mem::take(&mut self.0).split_first_chunk_mut() {
            *place = field;
            self.0 = rest;
        }
    }

    pub(crate) fn put_u32(&mut self, number: u32) {
        self.put(number.to_be_bytes());
    }

    pub(crate) fn put_u64(&mut self, number: u64) {
        self.put(number.to_be_bytes());
    }
}

/// Reads the fields of a record. Fields after the end of the record are zero.
pub(crate) struct RecordReader<'r>(&'r [u8]);

impl<'r> RecordReader<'r> {
    pub(crate) fn new(record: &'r [u8]) -> Self {
        Self(record)
    }

    pub(crate) fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk().unwrap_or((&[0; N], &[]));
        self.0 = rest;
        *field
    }

    pub(crate) fn take_u8(&mut self) -> u8 {
        self.take::<1>()[0]
    }

    pub(crate) fn take_u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take())
    }

    pub(crate) fn take_u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take())
    }
}
