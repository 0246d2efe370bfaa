// SPDX-License-Identifier: MIT
#include "mcp/notebook.h"

#include "testing.h"
#include "wire/err.h"
#include "wire/mem.h"

static const char *const good =
    "{'nbformat':4,'metadata':{'kernelspec':{'name':'python3'}},'cells':["
    "{'cell_type':'markdown','source':['# Title\\n','words']},"
    "{'cell_type':'code','execution_count':3,'source':'x = 1\\nx','outputs':["
    "{'output_type':'stream','name':'stdout','text':['out\\n']},"
    "{'output_type':'execute_result','data':{'text/plain':'1','text/html':'<b>'}},"
    "{'output_type':'display_data','data':{'image/png':'iVBO','text/plain':['Fig']}},"
    "{'output_type':'error','ename':'E','evalue':'v','traceback':["
    "'\\u001b[31mE\\u001b[0m: v']}]},"
    "{'cell_type':'code','execution_count':null,'source':[],'outputs':[]}]}";

static json_t *parse(const char *text)
{
	owned(free_text) char *copy = xstrdup(text);

	for (char *at = copy; *at; at++)
		if (*at == '\'')
			*at = '"';
	json_t *value = json_loads(copy, 0, NULL);
	assert_non_null(value);
	return value;
}

CASE(a_notebook_is_its_cells_and_what_they_printed)
{
	owned(buf_finish) struct buf text = {0};
	json_t *notebook = parse(good);

	assert_true(notebook_text(&text, notebook));
	assert_string_equal(buf_str(&text), "notebook of 3 cells, kernel python3\n"
					    "--- cell 1, markdown ---\n"
					    "# Title\nwords\n"
					    "--- cell 2, code, In [3] ---\n"
					    "x = 1\nx\n"
					    "--- output ---\n"
					    "out\n1\nFig\n[image/png]\nE: v\n"
					    "--- cell 3, code ---\n");
	json_decref(notebook);
}

/* Whatever stands where: shown as far as it goes, or not at all. */
CASE(what_is_no_notebook_does_no_harm)
{
	static const char *const wrong[] = {"[]", "{}", "{'cells':{}}",
					    "{'worksheets':[{'cells':[]}]}"};
	static const char *const odd[] = {
	    "{'cells':[]}",
	    "{'cells':[1,null,'x',[]]}",
	    "{'cells':[{'source':{},'cell_type':5,'outputs':'x'}],'metadata':[]}",
	    "{'cells':[{'source':[1,['x']],'outputs':[1,{'data':[1],'text':{}},"
	    "{'traceback':'x','ename':1}]}]}",
	};

	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		owned(buf_finish) struct buf text = {0};
		json_t *notebook = parse(wrong[i]);

		assert_false(notebook_text(&text, notebook));
		assert_int_equal(text.size, 0);
		json_decref(notebook);
	}
	for (size_t i = 0; i < COUNT_OF(odd); i++) {
		owned(buf_finish) struct buf text = {0};
		json_t *notebook = parse(odd[i]);

		assert_true(notebook_text(&text, notebook));
		json_decref(notebook);
	}
}

RUN(cmocka_unit_test(a_notebook_is_its_cells_and_what_they_printed),
    cmocka_unit_test(what_is_no_notebook_does_no_harm))
