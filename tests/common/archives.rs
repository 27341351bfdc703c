//! Creates archives byte by byte, including malformed ones that no program writes.

/// Returns a ustar header (POSIX) and the content, padded to whole blocks.
pub fn tar_member(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[100..108].copy_from_slice(b"0000644\0");
    let size = format!("{:011o}\0", content.len());
    block[124..136].copy_from_slice(size.as_bytes());
    block[136..148].copy_from_slice(b"00000000000\0");
    block[156] = kind;
    block[257..265].copy_from_slice(b"ustar\x0000");
    sum_up(&mut block);
    block.extend_from_slice(content);
    block.resize(block.len().next_multiple_of(512), 0);
    block
}

/// Writes the checksum into a header.
pub fn sum_up(header: &mut [u8]) {
    header[148..156].fill(b' ');
    let sum: u32 = header[..512].iter().map(|&octet| u32::from(octet)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

/// Creates a tar archive from names, types and contents.
pub fn tar(members: &[(&str, u8, &[u8])]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, kind, content) in members {
        archive.extend(tar_member(name, *kind, content));
    }
    archive.extend([0; 1024]);
    archive
}

/// Creates a zip archive with stored (uncompressed) members, from names and contents.
pub fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in members {
        let mut sum = flate2::Crc::new();
        sum.update(content);
        let length = u32::try_from(content.len()).unwrap().to_le_bytes();
        let name_length = u16::try_from(name.len()).unwrap().to_le_bytes();
        let start = u32::try_from(archive.len()).unwrap().to_le_bytes();
        // Version, flags, method, time and date.
        let common = [
            &[20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0][..],
            &sum.sum().to_le_bytes(),
            &length,
            &length,
            &name_length,
            &[0, 0],
        ]
        .concat();
        archive.extend([b"PK\x03\x04", &common[..], name.as_bytes(), content].concat());
        directory.extend([b"PK\x01\x02", &[20, 0][..], &common, &[0; 10], &start].concat());
        directory.extend(name.as_bytes());
    }
    let count = u16::try_from(members.len()).unwrap().to_le_bytes();
    let start = u32::try_from(archive.len()).unwrap().to_le_bytes();
    let length = u32::try_from(directory.len()).unwrap().to_le_bytes();
    archive.extend(directory);
    archive.extend(
        [
            b"PK\x05\x06",
            &[0; 4][..],
            &count,
            &count,
            &length,
            &start,
            &[0, 0],
        ]
        .concat(),
    );
    archive
}
