// SPDX-License-Identifier: MIT
#include "kernelmgr/states.h"

static void print_deadline(const struct state_row *row, FILE *to)
{
	if (row->deadline_s < 0)
		fprintf(to, " | its timeout | %s |\n", row->then);
	else if (row->deadline_s > 0)
		fprintf(to, " | %g s | %s |\n", row->deadline_s, row->then);
	else
		fprintf(to, " | - | - |\n");
}

void states_markdown(const struct state_row *rows, int count, FILE *to)
{
	fprintf(to, "| state | may become | deadline | then |\n|---|---|---|---|\n");
	for (int i = 0; i < count; i++) {
		fprintf(to, "| %s |", rows[i].name);
		for (int next = 0; next < count; next++)
			if (rows[i].next & (1u << next))
				fprintf(to, " %s", rows[next].name);
		print_deadline(&rows[i], to);
	}
}
