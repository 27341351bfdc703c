//! Owner, group, mode, access list and extended attributes of a new file.
//!
//! Only root can give a file to another user, and other users can give it only to their own groups. For a copy, the
//! original's owner and group are therefore optional, as for `cp -p`: if the system refuses them, the copy belongs to
//! the user who runs the program. The copy must not be accessible to more people than the original, so others get only
//! the permissions that every class of other users had: another group must not get the permissions of the original's
//! group, and a group that the original excluded must not get in as "others".

use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use super::is_unsupported;

pub(crate) type Owner = (Uid, Gid);

/// Purpose of a new file, which decides whether it must have the owner and the attributes of the old one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NewFile {
    /// The new file replaces the old one. It must have the same owner, group, access list and `user.` attributes, because
    /// programs that use the mailbox need them: a mail server must be able to deliver into a spool file.
    Replacement,
    /// The new file is a copy, and the old one is kept.
    Copy,
}

const NOT_OURS: &str = "the file belongs to another user or group, and the system does not allow the new file to have the same owner and group; run the command as root, or write the result to a new file";

/// The set-user-ID and set-group-ID bits of a file mode.
const SET_ID: u32 = 0o6000;

/// Returns the owner of the original file if embody runs as root, so that results do not belong to root. Returns `None`
/// for other users, who cannot give files away.
pub(crate) fn owner_of_results(like: Option<&Metadata>) -> Option<Owner> {
    Some(owner_of(
        like.filter(|_| rustix::process::geteuid().is_root())?,
    ))
}

fn owner_of(found: &Metadata) -> Owner {
    (Uid::from_raw(found.uid()), Gid::from_raw(found.gid()))
}

/// Gives a private file to a user and a group. If the system refuses this, the file stays as it is.
pub(crate) fn own(file: impl AsFd, owner: Option<Owner>) -> io::Result<()> {
    match owner {
        Some((user, group)) => give(file, Some(user), Some(group)).map(drop),
        None => Ok(()),
    }
}

pub(crate) fn own_folder(path: &Path, owner: Option<Owner>) -> io::Result<()> {
    if owner.is_none() {
        return Ok(());
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    own(rustix::fs::open(path, flags, Mode::empty())?, owner)
}

/// Whether a file got the requested owner, and the requested group.
struct OwnershipResult {
    owner: bool,
    group: bool,
}

impl OwnershipResult {
    fn is_all(&self) -> bool {
        self.owner && self.group
    }
}

/// Changes the owner and the group of a file. `None` leaves the value as it is. If the system refuses the owner, only the
/// group is changed: a user can give a file to each of their groups.
fn give(file: impl AsFd, owner: Option<Uid>, group: Option<Gid>) -> io::Result<OwnershipResult> {
    let given = |owner, group| Ok(OwnershipResult { owner, group });
    if owner.is_none() && group.is_none() {
        return given(true, true);
    }
    match rustix::fs::fchown(&file, owner, group) {
        Ok(()) => given(true, true),
        Err(why) if is_refused(why) => {
            let is_given = group.is_none()
                || owner.is_some() && rustix::fs::fchown(&file, None, group).is_ok();
            given(owner.is_none(), is_given)
        }
        Err(why) => Err(why.into()),
    }
}

/// Returns whether an error of fchown means that the system does not allow this owner. EINVAL is the error for a user that
/// has no number in a container.
fn is_refused(why: Errno) -> bool {
    [Errno::PERM, Errno::ACCESS, Errno::INVAL].contains(&why) || is_unsupported(why)
}

fn give_as(new: &File, has: &Metadata, wanted: &Metadata) -> io::Result<OwnershipResult> {
    let ((user, group), (new_user, new_group)) = (owner_of(wanted), owner_of(has));
    give(
        new,
        (user != new_user).then_some(user),
        (group != new_group).then_some(group),
    )
}

/// Returns an error if a file that replaces the file `like` could not get the same owner and group. Root does not need
/// this check, and a file of root must not belong to another user before it is complete.
pub(crate) fn check_ownership(new: &File, like: &Metadata) -> io::Result<()> {
    if rustix::process::geteuid().is_root() || give_as(new, &new.metadata()?, like)?.is_all() {
        Ok(())
    } else {
        Err(io::Error::other(NOT_OURS))
    }
}

/// Copies the owner, the mode, the extended attributes and (on Linux) the access control list of `like` to `new`, which
/// only its owner can access so far. Extended attributes of the system that cannot be copied are skipped. For a
/// replacement, it is an error if the owner, the mode, the access control list or an attribute of the user cannot be
/// copied.
pub(crate) fn dress(new: &File, like: &File, purpose: NewFile) -> io::Result<()> {
    let wanted = like.metadata()?;
    let given = give_as(new, &new.metadata()?, &wanted)?;
    let is_copy = purpose == NewFile::Copy;
    if !is_copy && !given.is_all() {
        return Err(io::Error::other(NOT_OURS));
    }
    copy_attributes(new, like, is_copy)?;
    let list = attributes::access_list(like)?;
    let mut mode = wanted.mode() & 0o7777;
    let has_list = match &list {
        Some(list) if given.group => match attributes::set_access_list(new, list) {
            Ok(()) => true,
            Err(_) if is_copy => false,
            Err(why) => return Err(why),
        },
        _ => false,
    };
    if !has_list {
        // The new file may have inherited an access list from its directory. In a file with an access list, the group bits
        // of the mode are the mask of the list, so setting the mode would activate its entries.
        attributes::remove_access_list(new)?;
    }
    if !given.group || list.is_some() && !has_list {
        let shared = shared(mode, list.as_deref());
        mode = mode & 0o7700 | shared << 3 | shared;
    }
    if !given.is_all() {
        mode &= !SET_ID;
    }
    if !given.owner {
        // This user may have been able to read the original only as a member of its group.
        mode |= 0o400;
    }
    new.set_permissions(Permissions::from_mode(mode))
}

/// Returns the permissions that every user except the owner has, as three bits.
fn shared(mode: u32, list: Option<&[u8]>) -> u32 {
    match list {
        None => mode >> 3 & mode & 7,
        Some(list) => attributes::shared_by_all(list).unwrap_or(0),
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn copy_attributes(new: &File, like: &File, is_copy: bool) -> io::Result<()> {
    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};

    // Maximum size on Linux of the list of attributes, and of each value.
    let mut names = vec![0_u8; 64 << 10];
    let Ok(length) = flistxattr(like, names.as_mut_slice()) else {
        return Ok(());
    };
    let mut value = vec![0_u8; 64 << 10];
    for name in names[..length]
        .split(|&b| b == 0)
        .filter(|name| !name.is_empty() && *name != attributes::ACCESS_LIST.to_bytes())
    {
        let Ok(length) = fgetxattr(like, name, value.as_mut_slice()) else {
            continue;
        };
        let set = fsetxattr(new, name, &value[..length], XattrFlags::empty());
        if name.starts_with(b"user.") && !is_copy {
            set?;
        }
    }
    Ok(())
}

/// The crate rustix does not support the extended attributes of FreeBSD, so no attributes are copied there.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn copy_attributes(_new: &File, _like: &File, _is_copy: bool) -> io::Result<()> {
    Ok(())
}

/// Access control lists on Linux, which are an extended attribute (acl(5)): a version, and then entries of eight bytes
/// with the kind, the permissions and the number of the user or group.
#[cfg(any(target_os = "linux", target_os = "android"))]
mod attributes {
    use std::ffi::CStr;
    use std::fs::File;
    use std::io;

    use rustix::fs::{XattrFlags, fgetxattr, fremovexattr, fsetxattr};
    use rustix::io::Errno;

    use super::is_unsupported;

    pub(super) const ACCESS_LIST: &CStr = c"system.posix_acl_access";

    const VERSION: usize = 4;
    const ENTRY: usize = 8;
    const OF_OWNER: u16 = 0x01;
    const MASK: u16 = 0x10;
    const OF_OTHERS: u16 = 0x20;

    pub(super) fn access_list(file: &File) -> io::Result<Option<Vec<u8>>> {
        // Most files have no list, and most lists are short, so a small buffer is tried first.
        for size in [256, 64 << 10] {
            let mut value = vec![0_u8; size];
            match fgetxattr(file, ACCESS_LIST, value.as_mut_slice()) {
                Ok(length) => {
                    value.truncate(length);
                    return Ok(Some(value));
                }
                Err(why) if why == Errno::NODATA || is_unsupported(why) => return Ok(None),
                Err(Errno::RANGE) => {}
                Err(why) => return Err(why.into()),
            }
        }
        Err(Errno::RANGE.into())
    }

    pub(super) fn set_access_list(file: &File, list: &[u8]) -> io::Result<()> {
        Ok(fsetxattr(file, ACCESS_LIST, list, XattrFlags::empty())?)
    }

    pub(super) fn remove_access_list(file: &File) -> io::Result<()> {
        match fremovexattr(file, ACCESS_LIST) {
            Err(why) if why == Errno::NODATA || is_unsupported(why) => Ok(()),
            done => Ok(done?),
        }
    }

    /// Returns the permissions that all entries except the one of the owner have in common. Returns `None` if the list is
    /// malformed.
    pub(super) fn shared_by_all(list: &[u8]) -> Option<u32> {
        let (entries, []) = list.get(VERSION..)?.as_chunks::<ENTRY>() else {
            return None;
        };
        let entries = entries.iter().map(|&[kind, kind2, bits, bits2, ..]| {
            let kind = u16::from_le_bytes([kind, kind2]);
            (kind, u32::from(u16::from_le_bytes([bits, bits2])))
        });
        let of = |wanted| move |&(kind, _): &(u16, u32)| kind == wanted;
        let mask = entries.clone().find(of(MASK)).map_or(7, |(_, bits)| bits);
        entries.clone().find(of(OF_OTHERS))?;
        let others = entries.filter(|(kind, _)| ![OF_OWNER, MASK].contains(kind));
        Some(others.fold(7, |shared, (kind, bits)| match kind {
            OF_OTHERS => shared & bits,
            _ => shared & bits & mask,
        }))
    }
}

/// On other systems, access control lists are neither read nor written.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod attributes {
    use std::ffi::CStr;
    use std::fs::File;
    use std::io;

    #[cfg_attr(not(target_vendor = "apple"), allow(dead_code))]
    pub const ACCESS_LIST: &CStr = c"";

    pub fn access_list(_file: &File) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    pub fn set_access_list(_file: &File, _list: &[u8]) -> io::Result<()> {
        Ok(())
    }

    pub fn remove_access_list(_file: &File) -> io::Result<()> {
        Ok(())
    }

    pub fn shared_by_all(_list: &[u8]) -> Option<u32> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (kind, bits, number) in entries {
            list.extend(kind.to_le_bytes());
            list.extend(bits.to_le_bytes());
            list.extend(number.to_le_bytes());
        }
        list
    }

    #[test]
    fn copy_for_another_group_grants_only_what_the_group_and_all_others_had() {
        for (mode, expected) in [
            (0o640, 0),
            (0o644, 4),
            (0o664, 4),
            (0o666, 6),
            (0o604, 0),
            (0o600, 0),
            (0o755, 5),
        ] {
            assert_eq!(shared(mode, None), expected, "{mode:o}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn copy_without_its_access_list_grants_only_what_every_entry_grants() {
        const NOBODY: u32 = u32::MAX;
        let of = |named: u16, group: u16, mask: u16, others: u16| {
            list(&[
                (0x01, 6, NOBODY),
                (0x02, named, 1000),
                (0x04, group, NOBODY),
                (0x10, mask, NOBODY),
                (0x20, others, NOBODY),
            ])
        };
        for (list, expected) in [
            (of(4, 4, 4, 4), 4),
            // The mode of this file is 0660, although its group has no access.
            (of(6, 0, 6, 0), 0),
            (of(0, 4, 4, 4), 0),
            (of(6, 6, 4, 6), 4),
            (Vec::new(), 0),
            (b"\x02\0\0\0\x01\0".to_vec(), 0),
        ] {
            assert_eq!(shared(0o664, Some(&list)), expected, "{list:?}");
        }
    }
}
