// SPDX-License-Identifier: MIT

#include <curl/curl.h>
