//! Access lists: files and folders that are made for their owner alone, and whether others have rights to one.

use super::name;
use std::fs::File;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE, LocalFree};
use windows_sys::Win32::Security::Authorization::{
    ConvertSidToStringSidW, ConvertStringSecurityDescriptorToSecurityDescriptorW, GetSecurityInfo,
    SDDL_REVISION_1, SE_FILE_OBJECT, SetSecurityInfo,
};
use windows_sys::Win32::Security::{
    ACCESS_ALLOWED_ACE, ACE_HEADER, ACL, DACL_SECURITY_INFORMATION, EqualSid, GetAce,
    GetSecurityDescriptorControl, GetTokenInformation, INHERIT_ONLY_ACE, IsWellKnownSid,
    OBJECT_SECURITY_INFORMATION, OWNER_SECURITY_INFORMATION, PROTECTED_DACL_SECURITY_INFORMATION,
    PSECURITY_DESCRIPTOR, PSID, SE_DACL_PROTECTED, SECURITY_ATTRIBUTES, TOKEN_INFORMATION_CLASS, TOKEN_QUERY,
    TokenOwner, TokenUser, UNPROTECTED_DACL_SECURITY_INFORMATION, WinBuiltinAdministratorsSid,
    WinLocalSystemSid,
};
use windows_sys::Win32::Storage::FileSystem::{
    CreateDirectoryW, CreateFileW, FILE_APPEND_DATA, FILE_CREATION_DISPOSITION, FILE_FLAG_OPEN_REPARSE_POINT,
    FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE, ReOpenFile, SYNCHRONIZE,
};
use windows_sys::Win32::System::SystemServices::{ACCESS_ALLOWED_ACE_TYPE, ACCESS_DENIED_ACE_TYPE};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

/// Files are shared, so that nobody who opens one meanwhile gets an error.
const SHARED: u32 = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

/// No SID is longer as text.
const TEXT_UNITS_MAX: usize = 256;

/// What is to be made.
#[derive(Clone, Copy)]
enum NewObject {
    File,
    Folder,
}

/// Memory that the system gave, and that goes back to it.
struct SystemMemory(*mut core::ffi::c_void);

impl Drop for SystemMemory {
    fn drop(&mut self) {
        // SAFETY: it came from a call that says so, and nobody else has it.
        unsafe { LocalFree(self.0) };
    }
}

/// Makes or opens a file; one that is made is for its owner alone.
pub(super) fn create(path: &Path, access: u32, how: FILE_CREATION_DISPOSITION) -> io::Result<File> {
    let (path, descriptor) = (for_call(path)?, for_owner_alone(NewObject::File)?);
    let attributes = attributes(&descriptor);
    // SAFETY: the path ends with 0, and what the attributes point to lives longer than the call.
    let handle = unsafe {
        let flags = FILE_FLAG_OPEN_REPARSE_POINT;
        CreateFileW(path.as_ptr(), access, SHARED, &raw const attributes, how, flags, null_mut())
    };
    owned(handle)
}

/// Makes a folder for its owner alone.
pub(super) fn create_folder(path: &Path) -> io::Result<()> {
    let (path, descriptor) = (for_call(path)?, for_owner_alone(NewObject::Folder)?);
    let attributes = attributes(&descriptor);
    // SAFETY: as above.
    let made = unsafe { CreateDirectoryW(path.as_ptr(), &raw const attributes) };
    if made == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Opens a file again, to append.
pub(super) fn reopen_to_append(file: &File) -> io::Result<File> {
    // SAFETY: the handle is open as long as `file` lives.
    owned(unsafe { ReOpenFile(file.as_raw_handle(), FILE_APPEND_DATA | SYNCHRONIZE, SHARED, 0) })
}

fn owned(handle: HANDLE) -> io::Result<File> {
    if handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was just opened, and nobody else has it.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) }.into())
}

/// The standard library makes long paths good for calls, and we cannot ask it to: a path without links has no limit.
fn for_call(path: &Path) -> io::Result<Vec<u16>> {
    let (Some(parent), Some(own)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    Ok(name::for_call(parent.canonicalize()?.join(own).as_os_str()))
}

fn attributes(descriptor: &SystemMemory) -> SECURITY_ATTRIBUTES {
    SECURITY_ATTRIBUTES {
        nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
        lpSecurityDescriptor: descriptor.0,
        bInheritHandle: 0,
    }
}

/// Gives all rights to the user of this process, and none to others; what is made in a folder gets the same.
fn for_owner_alone(kind: NewObject) -> io::Result<SystemMemory> {
    let user = user()?;
    let text = match kind {
        NewObject::File => format!("D:P(A;;FA;;;{user})"),
        NewObject::Folder => format!("D:P(A;OICI;FA;;;{user})"),
    };
    let text: Vec<u16> = text.encode_utf16().chain([0]).collect();
    let mut descriptor: PSECURITY_DESCRIPTOR = null_mut();
    // SAFETY: the text ends with 0, and the pointer that is written is ours.
    let made = unsafe {
        ConvertStringSecurityDescriptorToSecurityDescriptorW(
            text.as_ptr(),
            SDDL_REVISION_1,
            &raw mut descriptor,
            null_mut(),
        )
    };
    if made == 0 { Err(io::Error::last_os_error()) } else { Ok(SystemMemory(descriptor)) }
}

/// The user of this process as text.
fn user() -> io::Result<&'static str> {
    static USER: OnceLock<Option<String>> = OnceLock::new();
    let user = USER.get_or_init(|| {
        let token = of_token(TokenUser).ok()?;
        let mut text = null_mut();
        // SAFETY: the buffer begins with a pointer to a SID in it, and the pointer that is written is ours.
        if unsafe { ConvertSidToStringSidW(sid_of(&token), &raw mut text) } == 0 {
            return None;
        }
        let given = SystemMemory(text.cast());
        // SAFETY: it ends with 0.
        let length = (0..TEXT_UNITS_MAX).take_while(|&at| unsafe { *text.add(at) } != 0).count();
        // SAFETY: so many units were just read.
        let units = unsafe { std::slice::from_raw_parts(text, length) };
        let user = String::from_utf16(units).ok();
        drop(given);
        user
    });
    user.as_deref().ok_or_else(|| io::Error::other("the system does not say who we are"))
}

/// What the token of this process tells in a class that begins with a pointer to a SID. In words, for the alignment.
fn of_token(class: TOKEN_INFORMATION_CLASS) -> io::Result<Vec<u64>> {
    let mut token: HANDLE = null_mut();
    // SAFETY: the pointer that is written is ours.
    if unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &raw mut token) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was just opened, and nobody else has it.
    let token = unsafe { OwnedHandle::from_raw_handle(token) };
    // The longest SID has 68 bytes.
    let mut answer = vec![0_u64; 32];
    let (bytes, mut length) = (size_of_val(&answer[..]) as u32, 0);
    // SAFETY: the buffer has this many bytes.
    let done = unsafe {
        GetTokenInformation(token.as_raw_handle(), class, answer.as_mut_ptr().cast(), bytes, &raw mut length)
    };
    if done == 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// The SID that such an answer begins with.
fn sid_of(answer: &[u64]) -> PSID {
    // SAFETY: that is what it begins with.
    unsafe { *answer.as_ptr().cast::<PSID>() }
}

/// Whether a file belongs to us: to our user, or to the one for whom we make files (an administrator's are the group's).
pub(super) fn is_ours(file: &File) -> io::Result<bool> {
    let (_given, owner, _) = security_of(file, OWNER_SECURITY_INFORMATION)?;
    for class in [TokenUser, TokenOwner] {
        // SAFETY: both are SIDs, in memory that lives until then.
        if unsafe { EqualSid(owner, sid_of(&of_token(class)?)) } != 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether nobody else has rights to a file, but for the system and its administrators, who can take any.
pub(super) fn is_private(file: &File) -> io::Result<bool> {
    let (_given, _, list) = security_of(file, DACL_SECURITY_INFORMATION)?;
    // Without a list everybody may do everything.
    if list.is_null() {
        return Ok(false);
    }
    let user = of_token(TokenUser)?;
    // SAFETY: it is a list, in memory that lives until the end.
    let count = unsafe { (*list).AceCount };
    for number in 0..u32::from(count) {
        let mut entry = null_mut();
        // SAFETY: there is an entry of this number.
        if unsafe { GetAce(list, number, &raw mut entry) } == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: every entry begins with this.
        let header = unsafe { *entry.cast::<ACE_HEADER>() };
        let is_for_here = u32::from(header.AceFlags) & INHERIT_ONLY_ACE == 0;
        match u32::from(header.AceType) {
            ACCESS_DENIED_ACE_TYPE => {}
            _ if !is_for_here => {}
            ACCESS_ALLOWED_ACE_TYPE => {
                // SAFETY: an entry of this type has this form, and a SID begins there.
                let who: PSID = unsafe { &raw mut (*entry.cast::<ACCESS_ALLOWED_ACE>()).SidStart }.cast();
                // SAFETY: both are SIDs.
                let is_known = unsafe {
                    EqualSid(who, sid_of(&user)) != 0
                        || IsWellKnownSid(who, WinLocalSystemSid) != 0
                        || IsWellKnownSid(who, WinBuiltinAdministratorsSid) != 0
                };
                if !is_known {
                    return Ok(false);
                }
            }
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// The owner or the access list of a file, and the memory that it is in.
fn security_of(file: &File, what: OBJECT_SECURITY_INFORMATION) -> io::Result<(SystemMemory, PSID, *mut ACL)> {
    let (mut owner, mut list, mut descriptor): (PSID, *mut ACL, PSECURITY_DESCRIPTOR) =
        (null_mut(), null_mut(), null_mut());
    // SAFETY: the handle is open as long as `file` lives, and the pointers that are written are ours.
    let failed = unsafe {
        GetSecurityInfo(
            file.as_raw_handle(),
            SE_FILE_OBJECT,
            what,
            &raw mut owner,
            null_mut(),
            &raw mut list,
            null_mut(),
            &raw mut descriptor,
        )
    };
    if failed == 0 {
        Ok((SystemMemory(descriptor), owner, list))
    } else {
        Err(io::Error::from_raw_os_error(failed.cast_signed()))
    }
}

/// Gives a file the access list of another one.
pub(super) fn copy_list(from: &File, to: &File) -> io::Result<()> {
    let (given, _, list) = security_of(from, DACL_SECURITY_INFORMATION)?;
    let (mut control, mut revision) = (0, 0);
    // SAFETY: it is a descriptor, and the numbers that are written are ours.
    if unsafe { GetSecurityDescriptorControl(given.0, &raw mut control, &raw mut revision) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let heirs = if control & SE_DACL_PROTECTED == 0 {
        UNPROTECTED_DACL_SECURITY_INFORMATION
    } else {
        PROTECTED_DACL_SECURITY_INFORMATION
    };
    let what = DACL_SECURITY_INFORMATION | heirs;
    // SAFETY: the handle is open as long as `to` lives, and the list as long as `given`.
    let failed = unsafe {
        SetSecurityInfo(to.as_raw_handle(), SE_FILE_OBJECT, what, null_mut(), null_mut(), list, null())
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(failed.cast_signed())) }
}
