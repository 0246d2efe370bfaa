// SPDX-License-Identifier: MIT
#include "mcp/icons.h"

#include "wire/base64.h"
#include "wire/err.h"

json_t *icons_json(const char *path)
{
	owned(buf_finish) struct buf svg = {0}, uri = {0};

	buf_printf(
	    &svg,
	    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 24 24\" "
	    "fill=\"none\" stroke=\"#3776ab\" stroke-width=\"2\"><path d=\"%s\"/>"
	    "</svg>",
	    path);
	buf_text(&uri, "data:image/svg+xml;base64,");
	base64_add(&uri, svg.data, svg.size, BASE64_PLAIN);
	return json_pack("[{ss ss s[s]}]", "src", uri.data, "mimeType", "image/svg+xml",
			 "sizes", "any");
}
