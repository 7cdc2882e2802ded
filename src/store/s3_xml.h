// SPDX-License-Identifier: PostgreSQL
//
// The XML that S3 answers with: elements and text, one after the other. What S3 does not write is
// refused: document types, comments, sections, processing instructions but the one at the top,
// entities of one's own, text between elements.

#ifndef MILLRACE_STORE_S3_XML_H
#define MILLRACE_STORE_S3_XML_H

#include <stdbool.h>
#include <stddef.h>

// How deep elements may be inside of each other, and how long the names on the way to one may be
// together.
#define S3_XML_DEPTH_MAX 16
#define S3_XML_PATH_SIZE 256
// The longest text of an element.
#define S3_XML_TEXT_MAX 8192

// An element has ended. `path` are the names from the root to it, `Error/Code`; `text` is what it
// holds, decoded, NULL where it holds elements. Both are borrowed. false ends the reading.
typedef bool s3_xml_fn(void *arg, const char *path, const char *text);

// Reads a document, an element when it ends. false where it is none, and where `on_end` says so,
// which may have been called for a part of it.
bool s3_xml_read(const char *data, size_t size, s3_xml_fn *on_end, void *arg);

#endif
