// SPDX-License-Identifier: MIT

print("fetch")
