//! The buffer in which the host and the module exchange text and content. `web/module` contains the same file.

/// Bytes in the memory of the module, which the host can also read and write.
pub struct Buffer(pub Vec<u8>);

/// Creates a buffer of `length` zero bytes.
#[unsafe(no_mangle)]
pub extern "C" fn buffer_new(length: usize) -> Box<Buffer> {
    Box::new(Buffer(vec![0; length]))
}

/// Returns the address of the bytes of a buffer in the memory of the module.
#[unsafe(no_mangle)]
pub extern "C" fn buffer_data(buffer: &mut Buffer) -> *mut u8 {
    buffer.0.as_mut_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn buffer_length(buffer: &Buffer) -> usize {
    buffer.0.len()
}

#[unsafe(no_mangle)]
pub extern "C" fn buffer_free(_: Box<Buffer>) {}
