// SPDX-License-Identifier: MIT

// The Swift interface of AFNetworking, implemented on AsyncNetworking. On Apple's platforms `import AFNetworking` also
// imports Foundation, which on Linux is split into three modules.
@_exported public import Foundation
@_exported public import FoundationNetworking
@_exported public import FoundationXML

/// The AFNetworking version whose interface this module implements, 4.0, as a number. See
/// ``AFNetworkingVersionString``.
public let AFNetworkingVersionNumber: Double = 4.0

/// The AFNetworking version whose interface this module implements, 4.0.1. The version of this library is
/// ``AsyncNetworking/SessionManager/libraryVersion``.
public let AFNetworkingVersionString = "4.0.1"
