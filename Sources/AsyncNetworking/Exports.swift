// SPDX-License-Identifier: MIT

// Reexported so that users need a single import for requests, serializers, the response cache, reachability and header
// fields.
@_exported public import ANCache
@_exported public import ANHTTP
@_exported public import ANReachability
@_exported public import ANSerialization
@_exported public import HTTPTypes
