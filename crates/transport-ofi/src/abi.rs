//! The part of libfabric's interface that is used, as C has it: structures, tables of functions, numbers.
//!
//! From libfabric's public headers (`rdma/fabric.h` and its neighbours), version 1.9 of the interface. Later versions add to
//! the ends of structures and tables, so that only the beginnings are declared where libfabric makes them; those that are
//! made here are whole. A test compares sizes and places with the headers, where these are installed.

use std::ffi::{c_char, c_int, c_void};

/// The version of the interface that is asked for: 1.9.
pub const VERSION: u32 = 1 << 16 | 9;

pub const MSG: u64 = 1 << 1;
pub const RMA: u64 = 1 << 2;
pub const READ: u64 = 1 << 8;
pub const RECV: u64 = 1 << 10;
pub const SEND: u64 = 1 << 11;
pub const REMOTE_READ: u64 = 1 << 12;
pub const CONTEXT: u64 = 1 << 59;
pub const CONTEXT2: u64 = 1 << 52;
pub const ORDER_SAS: u64 = 1 << 8;
pub const MR_LOCAL: c_int = 1 << 2;
pub const MR_VIRT_ADDR: c_int = 1 << 4;
pub const MR_ALLOCATED: c_int = 1 << 5;
pub const MR_PROV_KEY: c_int = 1 << 6;
pub const MR_ENDPOINT: c_int = 1 << 9;
pub const EP_RDM: c_int = 3;
pub const THREAD_DOMAIN: c_int = 3;
pub const RM_ENABLED: c_int = 2;
pub const AV_UNSPEC: c_int = 0;
pub const CQ_FORMAT_MSG: c_int = 2;
pub const WAIT_NONE: c_int = 0;
pub const WAIT_FD: c_int = 3;
pub const GETWAIT: c_int = 5;
pub const ENABLE: c_int = 6;
/// An address that stands for any.
pub const ADDRESS_UNSPECIFIED: u64 = u64::MAX;
/// IPv4 and IPv6 addresses.
pub const FORMAT_IPV4: u32 = 2;
pub const FORMAT_IPV6: u32 = 3;
/// A terminated text.
pub const FORMAT_TEXT: u32 = 9;
/// Error numbers: those of the system, and libfabric's own.
pub const EAGAIN: isize = libc::EAGAIN as isize;
pub const EAVAIL: isize = 259;

#[repr(C)]
pub struct Fid {
    pub class: usize,
    pub context: *mut c_void,
    pub ops: *const FidOps,
}

#[repr(C)]
pub struct FidOps {
    pub size: usize,
    pub close: unsafe extern "C" fn(*mut Fid) -> c_int,
    pub bind: unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
    pub control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
}

#[repr(C)]
pub struct TransmitAttributes {
    pub capabilities: u64,
    pub mode: u64,
    pub operation_flags: u64,
    pub message_order: u64,
    pub completion_order: u64,
    pub inject_size: usize,
    pub size: usize,
    pub parts: usize,
}

#[repr(C)]
pub struct ReceiveAttributes {
    pub capabilities: u64,
    pub mode: u64,
    pub operation_flags: u64,
    pub message_order: u64,
    pub completion_order: u64,
    pub buffered: usize,
    pub size: usize,
    pub parts: usize,
}

#[repr(C)]
pub struct EndpointAttributes {
    pub kind: c_int,
    pub protocol: u32,
    pub protocol_version: u32,
    pub longest_message: usize,
}

#[repr(C)]
pub struct DomainAttributes {
    pub domain: *mut Domain,
    pub name: *mut c_char,
    pub threading: c_int,
    pub control_progress: c_int,
    pub data_progress: c_int,
    pub resource_management: c_int,
    pub vector_kind: c_int,
    pub memory_mode: c_int,
    pub memory_key_size: usize,
}

#[repr(C)]
pub struct FabricAttributes {
    pub fabric: *mut Fabric,
    pub name: *mut c_char,
    pub provider: *mut c_char,
    pub provider_version: u32,
}

#[repr(C)]
pub struct Info {
    pub next: *mut Info,
    pub capabilities: u64,
    pub mode: u64,
    pub address_format: u32,
    pub source_length: usize,
    pub destination_length: usize,
    pub source: *mut c_void,
    pub destination: *mut c_void,
    pub handle: *mut Fid,
    pub transmit: *mut TransmitAttributes,
    pub receive: *mut ReceiveAttributes,
    pub endpoint: *mut EndpointAttributes,
    pub domain: *mut DomainAttributes,
    pub fabric: *mut FabricAttributes,
}

pub type GetInfo =
    unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const Info, *mut *mut Info) -> c_int;
pub type FreeInfo = unsafe extern "C" fn(*mut Info);
pub type DuplicateInfo = unsafe extern "C" fn(*const Info) -> *mut Info;
pub type OpenFabric = unsafe extern "C" fn(*mut FabricAttributes, *mut *mut Fabric, *mut c_void) -> c_int;
pub type Version = unsafe extern "C" fn() -> u32;
pub type ErrorText = unsafe extern "C" fn(c_int) -> *const c_char;

/// A function that is never called here.
pub type Unused = *const c_void;

#[repr(C)]
pub struct Fabric {
    pub fid: Fid,
    pub ops: *const FabricOps,
}

#[repr(C)]
pub struct FabricOps {
    pub size: usize,
    pub domain: unsafe extern "C" fn(*mut Fabric, *mut Info, *mut *mut Domain, *mut c_void) -> c_int,
    pub passive_endpoint: Unused,
    pub open_event_queue: Unused,
    pub open_wait_set: Unused,
    pub try_wait: unsafe extern "C" fn(*mut Fabric, *mut *mut Fid, c_int) -> c_int,
}

#[repr(C)]
pub struct Domain {
    pub fid: Fid,
    pub ops: *const DomainOps,
    pub memory: *const MemoryOps,
}

#[repr(C)]
pub struct DomainOps {
    pub size: usize,
    pub open_vector:
        unsafe extern "C" fn(*mut Domain, *mut VectorAttributes, *mut *mut Vector, *mut c_void) -> c_int,
    pub open_queue:
        unsafe extern "C" fn(*mut Domain, *mut QueueAttributes, *mut *mut Queue, *mut c_void) -> c_int,
    pub endpoint: unsafe extern "C" fn(*mut Domain, *mut Info, *mut *mut Endpoint, *mut c_void) -> c_int,
}

#[repr(C)]
pub struct MemoryOps {
    pub size: usize,
    pub register: unsafe extern "C" fn(
        *mut Fid,
        *const c_void,
        usize,
        u64,
        u64,
        u64,
        u64,
        *mut *mut Memory,
        *mut c_void,
    ) -> c_int,
}

#[repr(C)]
pub struct Memory {
    pub fid: Fid,
    pub descriptor: *mut c_void,
    pub key: u64,
}

#[repr(C)]
pub struct VectorAttributes {
    pub kind: c_int,
    pub receive_context_bits: c_int,
    pub count: usize,
    pub endpoints_per_node: usize,
    pub name: *const c_char,
    pub map_address: *mut c_void,
    pub flags: u64,
}

/// An address vector.
#[repr(C)]
pub struct Vector {
    pub fid: Fid,
    pub ops: *const VectorOps,
}

#[repr(C)]
pub struct VectorOps {
    pub size: usize,
    pub insert: unsafe extern "C" fn(*mut Vector, *const c_void, usize, *mut u64, u64, *mut c_void) -> c_int,
}

#[repr(C)]
pub struct QueueAttributes {
    pub size: usize,
    pub flags: u64,
    pub format: c_int,
    pub wait: c_int,
    pub signaling_vector: c_int,
    pub wait_condition: c_int,
    pub wait_set: *mut c_void,
}

/// A completion queue.
#[repr(C)]
pub struct Queue {
    pub fid: Fid,
    pub ops: *const QueueOps,
}

#[repr(C)]
pub struct QueueOps {
    pub size: usize,
    pub read: unsafe extern "C" fn(*mut Queue, *mut c_void, usize) -> isize,
    pub read_from: Unused,
    pub read_error: unsafe extern "C" fn(*mut Queue, *mut ErrorEntry, u64) -> isize,
    pub wait_and_read: Unused,
    pub wait_and_read_from: Unused,
    pub signal: Unused,
    pub error_text:
        unsafe extern "C" fn(*mut Queue, c_int, *const c_void, *mut c_char, usize) -> *const c_char,
}

/// A completion, in the format of messages.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Entry {
    pub context: *mut c_void,
    pub flags: u64,
    pub length: usize,
}

/// An operation that has failed.
#[repr(C)]
pub struct ErrorEntry {
    pub context: *mut c_void,
    pub flags: u64,
    pub length: usize,
    pub buffer: *mut c_void,
    pub data: u64,
    pub tag: u64,
    pub too_long_by: usize,
    pub error: c_int,
    pub provider_error: c_int,
    pub error_data: *mut c_void,
    pub error_data_size: usize,
    /// Later versions add to it.
    pub room: [u64; 8],
}

#[repr(C)]
pub struct Endpoint {
    pub fid: Fid,
    pub ops: Unused,
    pub connections: *const ConnectionOps,
    pub messages: *const MessageOps,
    pub remote: *const RemoteOps,
}

#[repr(C)]
pub struct ConnectionOps {
    pub size: usize,
    pub set_name: Unused,
    pub get_name: unsafe extern "C" fn(*mut Fid, *mut c_void, *mut usize) -> c_int,
}

#[repr(C)]
pub struct MessageOps {
    pub size: usize,
    pub receive:
        unsafe extern "C" fn(*mut Endpoint, *mut c_void, usize, *mut c_void, u64, *mut c_void) -> isize,
    pub receive_parts: Unused,
    pub receive_message: Unused,
    pub send:
        unsafe extern "C" fn(*mut Endpoint, *const c_void, usize, *mut c_void, u64, *mut c_void) -> isize,
    pub send_parts: Unused,
    pub send_message: Unused,
    pub inject: unsafe extern "C" fn(*mut Endpoint, *const c_void, usize, u64) -> isize,
}

/// Reads and writes of others' memory.
#[repr(C)]
pub struct RemoteOps {
    pub size: usize,
    pub read: unsafe extern "C" fn(
        *mut Endpoint,
        *mut c_void,
        usize,
        *mut c_void,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> isize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;
    use std::mem::offset_of;
    use std::process::Command;

    /// One line for each number that C and Rust must agree on: what C calls it, and what Rust says.
    fn facts() -> Vec<(String, u64)> {
        let mut facts = Vec::new();
        macro_rules! places {
            ($rust:ident, $c:literal: $($field:ident $name:literal),+) => {
                $(facts.push((format!("offsetof({}, {})", $c, $name), offset_of!($rust, $field) as u64));)+
            };
        }
        macro_rules! numbers {
            ($($rust:expr, $c:literal;)+) => { $(facts.push(($c.to_owned(), $rust as u64));)+ };
        }
        places!(Fid, "struct fid": context "context", ops "ops");
        places!(FidOps, "struct fi_ops": close "close", bind "bind", control "control");
        places!(TransmitAttributes, "struct fi_tx_attr": mode "mode", message_order "msg_order", inject_size "inject_size",
            size "size", parts "iov_limit");
        places!(ReceiveAttributes, "struct fi_rx_attr": mode "mode", message_order "msg_order", size "size");
        places!(EndpointAttributes, "struct fi_ep_attr": kind "type", protocol "protocol", longest_message "max_msg_size");
        places!(DomainAttributes, "struct fi_domain_attr": name "name", threading "threading", resource_management
            "resource_mgmt", vector_kind "av_type", memory_mode "mr_mode", memory_key_size "mr_key_size");
        places!(FabricAttributes, "struct fi_fabric_attr": name "name", provider "prov_name", provider_version "prov_version");
        places!(Info, "struct fi_info": next "next", capabilities "caps", mode "mode", address_format "addr_format",
            source_length "src_addrlen", source "src_addr", transmit "tx_attr", receive "rx_attr", endpoint "ep_attr",
            domain "domain_attr", fabric "fabric_attr");
        places!(Fabric, "struct fid_fabric": fid "fid", ops "ops");
        places!(FabricOps, "struct fi_ops_fabric": domain "domain", try_wait "trywait");
        places!(Domain, "struct fid_domain": ops "ops", memory "mr");
        places!(DomainOps, "struct fi_ops_domain": open_vector "av_open", open_queue "cq_open", endpoint "endpoint");
        places!(MemoryOps, "struct fi_ops_mr": register "reg");
        places!(Memory, "struct fid_mr": descriptor "mem_desc", key "key");
        places!(VectorAttributes, "struct fi_av_attr": kind "type", count "count", name "name", flags "flags");
        places!(Vector, "struct fid_av": ops "ops");
        places!(VectorOps, "struct fi_ops_av": insert "insert");
        places!(QueueAttributes, "struct fi_cq_attr": size "size", flags "flags", format "format", wait "wait_obj",
            wait_condition "wait_cond", wait_set "wait_set");
        places!(Queue, "struct fid_cq": ops "ops");
        places!(QueueOps, "struct fi_ops_cq": read "read", read_error "readerr", error_text "strerror");
        places!(Entry, "struct fi_cq_msg_entry": context "op_context", flags "flags", length "len");
        places!(ErrorEntry, "struct fi_cq_err_entry": length "len", too_long_by "olen", error "err", provider_error
            "prov_errno", error_data "err_data", error_data_size "err_data_size");
        places!(Endpoint, "struct fid_ep": ops "ops", connections "cm", messages "msg", remote "rma");
        places!(ConnectionOps, "struct fi_ops_cm": get_name "getname");
        places!(MessageOps, "struct fi_ops_msg": receive "recv", send "send", inject "inject");
        places!(RemoteOps, "struct fi_ops_rma": read "read");
        numbers!(
            size_of::<Entry>(), "sizeof(struct fi_cq_msg_entry)";
            size_of::<VectorAttributes>(), "sizeof(struct fi_av_attr)";
            size_of::<QueueAttributes>(), "sizeof(struct fi_cq_attr)";
            size_of::<Fid>(), "sizeof(struct fid)";
            MSG, "FI_MSG"; RMA, "FI_RMA"; READ, "FI_READ"; REMOTE_READ, "FI_REMOTE_READ"; RECV, "FI_RECV"; SEND, "FI_SEND";
            CONTEXT, "FI_CONTEXT"; CONTEXT2, "FI_CONTEXT2";
            ORDER_SAS, "FI_ORDER_SAS"; MR_LOCAL, "FI_MR_LOCAL"; MR_VIRT_ADDR, "FI_MR_VIRT_ADDR";
            MR_ALLOCATED, "FI_MR_ALLOCATED"; MR_PROV_KEY, "FI_MR_PROV_KEY"; MR_ENDPOINT, "FI_MR_ENDPOINT";
            EP_RDM, "FI_EP_RDM"; THREAD_DOMAIN, "FI_THREAD_DOMAIN"; RM_ENABLED, "FI_RM_ENABLED";
            AV_UNSPEC, "FI_AV_UNSPEC"; CQ_FORMAT_MSG, "FI_CQ_FORMAT_MSG"; WAIT_NONE, "FI_WAIT_NONE";
            WAIT_FD, "FI_WAIT_FD"; GETWAIT, "FI_GETWAIT"; ENABLE, "FI_ENABLE";
            ADDRESS_UNSPECIFIED, "FI_ADDR_UNSPEC"; FORMAT_IPV4, "FI_SOCKADDR_IN"; FORMAT_IPV6, "FI_SOCKADDR_IN6"; FORMAT_TEXT, "FI_ADDR_STR";
            EAGAIN, "FI_EAGAIN"; EAVAIL, "FI_EAVAIL";
        );
        facts
    }

    #[test]
    fn everything_is_where_the_headers_say() {
        let facts = facts();
        let mut program = String::from(
            "#include <stddef.h>\n#include <stdio.h>\n#include <rdma/fi_cm.h>\n#include <rdma/fi_domain.h>\n\
             #include <rdma/fi_endpoint.h>\n#include <rdma/fi_rma.h>\n#include <rdma/fi_errno.h>\nint main(void) {\n",
        );
        for (name, _) in &facts {
            writeln!(program, "    printf(\"%llu\\n\", (unsigned long long)({name}));").unwrap();
        }
        let room = size_of::<ErrorEntry>();
        writeln!(program, "    return sizeof(struct fi_cq_err_entry) > {room};\n}}").unwrap();
        let folder = std::env::temp_dir().join(format!("parnass-ofi-abi-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (source, binary) = (folder.join("facts.c"), folder.join("facts"));
        std::fs::write(&source, program).unwrap();
        let headers = std::path::Path::new("/usr/include/rdma/fi_cm.h").exists();
        let compiled = headers
            .then(|| Command::new("cc").arg("-w").arg("-o").arg(&binary).arg(&source).status())
            .is_some_and(|status| status.is_ok_and(|status| status.success()));
        let output = compiled.then(|| Command::new(&binary).output().unwrap());
        std::fs::remove_dir_all(&folder).unwrap();
        if !headers {
            eprintln!("skip: libfabric's headers are not installed (Debian: libfabric-dev)");
            return;
        }
        let output = output.expect("the headers compile");
        assert!(output.status.success(), "struct fi_cq_err_entry has outgrown its room");
        let said: Vec<u64> =
            String::from_utf8(output.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(said.len(), facts.len());
        for ((name, ours), theirs) in facts.iter().zip(said) {
            assert_eq!(*ours, theirs, "{name}");
        }
    }
}
