// SPDX-License-Identifier: MIT

// AFNetworking's interface, as Swift saw it, on top of AsyncNetworking. Files that imported AFNetworking on Apple's systems
// got Foundation with it, which on Linux is three modules.
@_exported public import Foundation
@_exported public import FoundationNetworking
@_exported public import FoundationXML

/// The version of AFNetworking whose interface this module has, as a number.
public let AFNetworkingVersionNumber: Double = 4.0

/// The version of AFNetworking whose interface this module has. ``AsyncNetworking/SessionManager/libraryVersion`` is the
/// library's own.
public let AFNetworkingVersionString = "4.0.1"
