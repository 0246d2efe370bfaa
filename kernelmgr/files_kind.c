// SPDX-License-Identifier: MIT
#include "kernelmgr/files_kind.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "wire/mem.h"
#include "wire/utf8.h"

#define OFFICE "application/vnd.openxmlformats-officedocument."
#define OPEN_DOCUMENT "application/vnd.oasis.opendocument."

/* Bytes that only this kind has, at this place. */
struct magic {
	size_t at;
	const char *bytes;
	size_t size;
	struct files_kind kind;
};
#define MAGIC(at, text) at, text, sizeof(text) - 1

static const struct magic magics[] = {
    {MAGIC(0, "\x89PNG\r\n\x1a\n"),
     {"a PNG picture", "image/png", "PIL.Image.open", 0}},
    {MAGIC(0, "\xff\xd8\xff"), {"a JPEG picture", "image/jpeg", "PIL.Image.open", 0}},
    {MAGIC(0, "GIF8"), {"a GIF picture", "image/gif", "PIL.Image.open", 0}},
    {MAGIC(8, "WEBPVP8"), {"a WebP picture", "image/webp", "PIL.Image.open", 0}},
    {MAGIC(0, "II*\0"), {"a TIFF picture", "image/tiff", "PIL.Image.open", 0}},
    {MAGIC(0, "MM\0*"), {"a TIFF picture", "image/tiff", "PIL.Image.open", 0}},
    {MAGIC(0, "PAR1"),
     {"a Parquet table", "application/vnd.apache.parquet", "pandas.read_parquet",
      FILES_PARQUET}},
    {MAGIC(0, "ARROW1\0\0"),
     {"an Arrow table", "application/vnd.apache.arrow.file", "pandas.read_feather", 0}},
    {MAGIC(0, "SQLite format 3\0"),
     {"an SQLite database", "application/vnd.sqlite3", "sqlite3.connect", 0}},
    {MAGIC(0, "\x89HDF\r\n\x1a\n"),
     {"an HDF5 file", "application/x-hdf5", "h5py.File", 0}},
    {MAGIC(0, "\x93NUMPY"),
     {"a numpy array", "application/octet-stream", "numpy.load", 0}},
    {MAGIC(0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
     {"an old Office document", "application/x-ole-storage", "pandas.read_excel", 0}},
    {MAGIC(0, "\x1f\x8b\x08"), {"gzip data", "application/gzip", "gzip.open", 0}},
    {MAGIC(0, "BZh"), {"bzip2 data", "application/x-bzip2", "bz2.open", 0}},
    {MAGIC(0, "\xfd"
	      "7zXZ\0"),
     {"xz data", "application/x-xz", "lzma.open", 0}},
    {MAGIC(0, "\x28\xb5\x2f\xfd"), {"zstd data", "application/zstd", "", 0}},
    {MAGIC(0, "7z\xbc\xaf\x27\x1c"),
     {"a 7z archive", "application/x-7z-compressed", "", 0}},
    {MAGIC(257, "ustar"), {"a tar archive", "application/x-tar", "tarfile.open", 0}},
    {MAGIC(0, "\x7f"
	      "ELF"),
     {"an ELF program", "application/x-elf", "", 0}},
    {MAGIC(8, "WAVEfmt"), {"a WAV recording", "audio/wav", "wave.open", 0}},
    {MAGIC(0, "OggS"), {"an Ogg recording", "audio/ogg", "", 0}},
    {MAGIC(0, "fLaC"), {"a FLAC recording", "audio/flac", "", 0}},
    {MAGIC(0, "ID3"), {"an MP3 recording", "audio/mpeg", "", 0}},
    {MAGIC(4, "ftyp"), {"an MP4 video", "video/mp4", "", 0}},
    {MAGIC(0, "\x1a\x45\xdf\xa3"), {"a Matroska video", "video/x-matroska", "", 0}},
};

/* What a ZIP is, by a name in its first entries or, where these do not tell, by the
 * ending of its own. */
static const struct {
	const char *inside, *ending;
	struct files_kind kind;
} zips[] = {
    {"xl/",
     ".xlsx",
     {"an Excel workbook", OFFICE "spreadsheetml.sheet", "pandas.read_excel",
      FILES_EXCEL}},
    {"xl/",
     ".xlsm",
     {"an Excel workbook", OFFICE "spreadsheetml.sheet", "pandas.read_excel",
      FILES_EXCEL}},
    {"word/",
     ".docx",
     {"a Word document", OFFICE "wordprocessingml.document", "docx.Document", 0}},
    {"ppt/",
     ".pptx",
     {"a PowerPoint file", OFFICE "presentationml.presentation", "pptx.Presentation",
      0}},
    {OPEN_DOCUMENT "spreadsheet",
     ".ods",
     {"an OpenDocument table", OPEN_DOCUMENT "spreadsheet", "pandas.read_excel", 0}},
    {OPEN_DOCUMENT "text",
     ".odt",
     {"an OpenDocument text", OPEN_DOCUMENT "text", "", 0}},
    {".npy", ".npz", {"numpy arrays", "application/octet-stream", "numpy.load", 0}},
};
static const struct files_kind zip = {"a ZIP archive", "application/zip",
				      "zipfile.ZipFile", 0};
static const struct files_kind pdf = {"a PDF document", "application/pdf",
				      "pypdf.PdfReader", 0};
static const struct files_kind notebook = {"a notebook", "application/x-ipynb+json", "",
					   FILES_NOTEBOOK};

static const struct {
	const char *ending, *mime;
} texts[] =
    {
	{".csv", "text/csv"},
	{".tsv", "text/tab-separated-values"},
	{".txt", "text/plain"},
	{".log", "text/plain"},
	{".md", "text/markdown"},
	{".py", "text/x-python"},
	{".json", "application/json"},
	{".jsonl", "application/jsonl"},
	{".ipynb", "application/x-ipynb+json"},
	{".html", "text/html"},
	{".xml", "application/xml"},
	{".yaml", "application/yaml"},
	{".yml", "application/yaml"},
	{".toml", "application/toml"},
	{".svg", "image/svg+xml"},
},
  others[] = {
      {".png", "image/png"},
      {".jpg", "image/jpeg"},
      {".jpeg", "image/jpeg"},
      {".gif", "image/gif"},
      {".webp", "image/webp"},
      {".pdf", "application/pdf"},
      {".xls", "application/vnd.ms-excel"},
      {".parquet", "application/vnd.apache.parquet"},
      {".sqlite", "application/vnd.sqlite3"},
      {".zip", "application/zip"},
      {".gz", "application/gzip"},
      {".tar", "application/x-tar"},
      {".wav", "audio/wav"},
      {".mp3", "audio/mpeg"},
      {".mp4", "video/mp4"},
};

static bool ends_in(const char *path, size_t len, const char *ending)
{
	size_t size = strlen(ending);

	return len > size && strncasecmp(path + len - size, ending, size) == 0;
}

static const struct files_kind *zip_kind(const char *path, size_t path_size,
					 const char *head, size_t size)
{
	for (size_t i = 0; i < COUNT_OF(zips); i++)
		if (ends_in(path, path_size, zips[i].ending))
			return &zips[i].kind;
	for (size_t i = 0; i < COUNT_OF(zips); i++)
		if (memmem(head, size, zips[i].inside, strlen(zips[i].inside)))
			return &zips[i].kind;
	return &zip;
}

/* Some of the magic is letters, which a text may begin with too ("ID3,name"). */
static bool looks_like_text(const char *head, size_t size)
{
	return !memchr(head, '\0', size) &&
	       utf8_valid_up_to(head, size) == size - utf8_unfinished(head, size);
}

static const struct files_kind *kind_of_text(const char *path, size_t path_size,
					     const char *head, size_t size)
{
	if (size >= 5 && memcmp(head, "%PDF-", 5) == 0)
		return &pdf;
	return ends_in(path, path_size, ".ipynb") ? &notebook : NULL;
}

const struct files_kind *files_kind_of(const char *path, size_t path_size,
				       const char *head, size_t size)
{
	if (looks_like_text(head, size))
		return kind_of_text(path, path_size, head, size);
	for (size_t i = 0; i < COUNT_OF(magics); i++) {
		const struct magic *magic = &magics[i];

		if (size >= magic->at + magic->size &&
		    memcmp(head + magic->at, magic->bytes, magic->size) == 0)
			return &magic->kind;
	}
	if (size >= 4 &&
	    (memcmp(head, "PK\3\4", 4) == 0 || memcmp(head, "PK\5\6", 4) == 0))
		return zip_kind(path, path_size, head, size);
	return kind_of_text(path, path_size, head, size);
}

const char *files_mime_of_text(const char *path)
{
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		if (ends_in(path, strlen(path), texts[i].ending))
			return texts[i].mime;
	return NULL;
}

const char *files_mime_of_name(const char *path)
{
	size_t size = strlen(path);

	for (size_t i = 0; i < COUNT_OF(others); i++)
		if (ends_in(path, size, others[i].ending))
			return others[i].mime;
	for (size_t i = 0; i < COUNT_OF(zips); i++)
		if (ends_in(path, size, zips[i].ending))
			return zips[i].kind.mime;
	return files_mime_of_text(path);
}
