// SPDX-License-Identifier: MIT
#include "kernelmgr/files_kind.h"

#include "testing.h"
#include "wire/mem.h"

#define BYTES(text) text, sizeof(text) - 1

static const struct files_kind *kind_of(const char *path, const char *head, size_t size)
{
	return files_kind_of(path, strlen(path), head, size);
}

static void check(const char *path, const char *head, size_t size, const char *words)
{
	const struct files_kind *kind = kind_of(path, head, size);

	if (!kind)
		fail_msg("%s: nothing, not %s", path, words);
	else
		assert_string_equal(kind->words, words);
}

CASE(bytes_tell_the_kind_and_the_name_does_not)
{
	check("a.txt", BYTES("\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), "a PNG picture");
	check("a", BYTES("\xff\xd8\xff\xe0\0\x10JFIF"), "a JPEG picture");
	check("a.png", BYTES("GIF89a\1\0\1\0"), "a GIF picture");
	check("a", BYTES("RIFF\x24\0\0\0WEBPVP8 "), "a WebP picture");
	check("a", BYTES("RIFF\x24\0\0\0WAVEfmt "), "a WAV recording");
	check("a", BYTES("%PDF-1.7\n"), "a PDF document");
	check("a", BYTES("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"), "a PDF document");
	check("a.csv", BYTES("PAR1\x15\0"), "a Parquet table");
	check("a", BYTES("SQLite format 3\0\x10"), "an SQLite database");
	check("a", BYTES("\x1f\x8b\x08\0\0"), "gzip data");
	check("a",
	      BYTES("\x7f"
		    "ELF\2\1\1\0"),
	      "an ELF program");
	check("a", BYTES("\x93NUMPY\1\0v\0"), "a numpy array");
	check("a", BYTES("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), "an old Office document");
}

CASE(a_zip_is_told_by_its_name_or_what_is_inside)
{
	check("t.xlsx", BYTES("PK\3\4\x14\0\0\0"), "an Excel workbook");
	check("T.XLSM", BYTES("PK\3\4\x14\0\0\0"), "an Excel workbook");
	check("t", BYTES("PK\3\4\x14\0\0\0xl/workbook.xml"), "an Excel workbook");
	check("t", BYTES("PK\3\4\x14\0\0\0word/document.xml"), "a Word document");
	check("t.zip", BYTES("PK\3\4\x14\0\0\0a.txt"), "a ZIP archive");
	check("empty", BYTES("PK\5\6\0\0\0\0"), "a ZIP archive");
}

CASE(a_tar_archive_says_so_late)
{
	char head[512] = "a.txt";

	memcpy(head + 257, "ustar", 5);
	check("a", head, sizeof head, "a tar archive");
	assert_null(kind_of("a", head, 261)); /* too little of it */
}

/* Letters that are magic in a binary file are words in a text. */
CASE(text_stays_text)
{
	static const char *const texts[] = {
	    "",     "ID3,name\n1,x\n", "PAR1 is a word", "BZh",   "OggS",
	    "GIF8", "12345678WAVEfmt", "abcdftyp",       "PK\3\4"};

	for (size_t i = 0; i < COUNT_OF(texts); i++)
		if (kind_of("a.xlsx", texts[i], strlen(texts[i])))
			fail_msg("%s is taken for %s", texts[i],
				 kind_of("a", texts[i], strlen(texts[i]))->words);
	check("a.ipynb", BYTES("{\"cells\":[]}"), "a notebook");
	assert_null(kind_of("a.json", BYTES("{\"cells\":[]}")));
}

CASE(unknown_bytes_are_no_kind)
{
	assert_null(kind_of("a.png", BYTES("\0\1\2\3")));
	assert_null(kind_of("a", BYTES("\x89PN\0")));
	assert_null(kind_of("a", BYTES("PK\3")));
}

CASE(names_promise_a_media_type)
{
	assert_string_equal(files_mime_of_name("a/b.CSV"), "text/csv");
	assert_string_equal(files_mime_of_name("b.png"), "image/png");
	assert_string_equal(files_mime_of_name("b.xlsx"),
			    "application/vnd.openxmlformats-officedocument."
			    "spreadsheetml.sheet");
	assert_null(files_mime_of_name(".csv"));
	assert_null(files_mime_of_name("csv"));
	assert_null(files_mime_of_name(""));
	assert_string_equal(files_mime_of_text("a.md"), "text/markdown");
	assert_null(files_mime_of_text("a.png"));
}

RUN(cmocka_unit_test(bytes_tell_the_kind_and_the_name_does_not),
    cmocka_unit_test(a_zip_is_told_by_its_name_or_what_is_inside),
    cmocka_unit_test(a_tar_archive_says_so_late), cmocka_unit_test(text_stays_text),
    cmocka_unit_test(unknown_bytes_are_no_kind),
    cmocka_unit_test(names_promise_a_media_type))
