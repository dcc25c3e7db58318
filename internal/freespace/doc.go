// Package freespace tells how much may still be written to a filesystem.
package freespace
