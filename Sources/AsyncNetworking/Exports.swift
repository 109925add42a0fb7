// SPDX-License-Identifier: MIT

// One import brings all that a caller names: requests, serializers, reachability, header fields.
@_exported public import ANHTTP
@_exported public import ANReachability
@_exported public import ANSerialization
@_exported public import HTTPTypes
